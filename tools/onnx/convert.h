// ONNX models as quoll models, for programs that load them directly. Library quoll_onnx, where
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
// bool is u8. Input::array and Output::array (input.h, output.h) say rank, sizes and
// element type as ONNX has them.
#ifndef QUOLL_TOOLS_ONNX_CONVERT_H
#define QUOLL_TOOLS_ONNX_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/model.h"

namespace quoll {

struct OnnxOptions {
    // Sizes of inputs, in place of what the file says. -1: not known.
    std::map<std::string, std::vector<int64_t>> shapes;
    // Inputs that become constants, by the .npy files that hold them, or the numbers themselves
    // ("16000", "1,2": as many as the input has values, or one for all).
    std::map<std::string, std::string> constants;
    // Values to take as inputs and outputs of the model; none: the file's.
    std::vector<std::string> inputs, outputs;
    // How weights are stored: f32, f16 or bf16. f16 only where it can hold the values.
    DType storage = DType::f32;
    // Layers are called after the nodes that they come from, not after their first output.
    bool keep_names = false;
    // Refuse files that ask for far more nodes or computed constants than they hold themselves.
    bool limits = true;
    // Told how many of the nodes have been converted; from the thread that converts.
    std::function<void(size_t done, size_t total)> progress;
};

// A node, or an input or output, that stands in the way.
struct OnnxProblem {
    std::string node, op, reason;
    int opset;
};

struct OnnxResult {
    Model model;
    std::vector<OnnxProblem> problems;
    std::map<std::string, int> counts;  // what was done, how often
    std::vector<std::string> notes;     // where results may differ from ONNX's
    // What the model's weights refer to.
    std::shared_ptr<const void> storage;
};

// Reads and converts a file. 0, or a negative code: then the reason is in the log, or every node
// that cannot be converted is in result->problems. Data files that the model names must lie in its
// folder or below.
int convert_onnx(const std::string& path, const OnnxOptions& options, OnnxResult* result);
// The same from memory; `folder` is where data files lie, "" if there may be none.
int convert_onnx(const void* data, size_t size, const std::string& folder,
                 const OnnxOptions& options, OnnxResult* result);

// For a file that convert_onnx refuses with these options: options with which it converts, as words
// of a command line ("--constant sr=16000 --shape input=1,576"); "" if none of those that are tried
// within so many seconds (0: any number) does.
std::string suggest_options(const std::string& path, const OnnxOptions& options, double seconds);

// Converts a file into a Net whose options are set; problems go to the log, one line each.
int load_onnx(const std::string& path, const OnnxOptions& options, Net* net);

// The page docs/onnx.md: which operators are supported, and how far.
std::string onnx_operator_page();

}  // namespace quoll

#endif
