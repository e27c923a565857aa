// ONNX models as Nets. In the library quoll_onnx (CMake target quoll::onnx), which is built where
// libonnx and protobuf are there.
//
//   quoll::OnnxOptions options;
//   options.shapes["x"] = {1, 3, 224, 224};  // if the file leaves sizes open that shall be fixed
//   quoll::Net net;
//   if (quoll::load_onnx("model.onnx", options, &net)) return 1;
//   quoll::Extractor ex = net.create_extractor();
//   ex.input("x", image);  // f32 as (c,h,w), the batch axis being the Mat's n
//
// A tensor of rank 3 or 4 and of floats lies in a Mat with its first axis as the batch count n; of
// others each axis is one of the Mat, from the outermost on. Integers of more than a byte are s32,
// bool is u8.
#ifndef QUOLL_ONNX_H
#define QUOLL_ONNX_H

#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quoll/mat.h"

namespace quoll {

class Net;

// How a model is converted.
struct OnnxOptions {
    // Sizes of inputs, instead of those in the file. -1: not known.
    std::map<std::string, std::vector<int64_t>> shapes;
    // Inputs that become constants: the .npy file that holds the values, or the values themselves
    // ("16000", "1,2": as many as the input has, or one for all).
    std::map<std::string, std::string> constants;
    // Values to take as inputs and outputs of the model; empty: those of the file.
    std::vector<std::string> inputs, outputs;
    // How weights are stored: f32, f16 or bf16. f16 only if it can hold the values.
    DType storage = DType::f32;
    // Name layers after the nodes that they come from, not after their first output.
    bool keep_names = false;
    // Refuse files that ask for far more nodes or computed constants than they hold themselves.
    bool limits = true;
    // Compute what is much larger than the constants it follows from when the Net is loaded,
    // instead of storing it.
    bool compute_large_constants = false;
    // Called with the number of nodes that have been converted, on the thread that converts.
    std::function<void(size_t done, size_t total)> progress;
};

// Converts a file into a Net whose options are set already. Returns 0, or a negative code after a
// message for each node that stands in the way.
int load_onnx(const std::string& path, const OnnxOptions& options, Net* net);

}  // namespace quoll

#endif
