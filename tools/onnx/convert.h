// ONNX models as quoll models.
#ifndef QUOLL_TOOLS_ONNX_CONVERT_H
#define QUOLL_TOOLS_ONNX_CONVERT_H

#include <stdint.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/model.h"

namespace quoll {

struct OnnxOptions {
    // Sizes of inputs, in place of what the file says. -1: not known.
    std::map<std::string, std::vector<int64_t>> shapes;
    // Inputs that become constants, by the .npy files that hold them.
    std::map<std::string, std::string> constants;
    // Values to take as inputs and outputs of the model; none: the file's.
    std::vector<std::string> inputs, outputs;
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
// that cannot be converted is in result->problems.
int convert_onnx(const std::string& path, const OnnxOptions& options, OnnxResult* result);

// The page docs/onnx.md: which operators are supported, and how far.
std::string onnx_operator_page();

}  // namespace quoll

#endif
