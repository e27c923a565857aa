// ONNX models as quoll models, for programs that change or write them; quoll/onnx.h loads them.
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
#include "quoll/onnx.h"

namespace quoll {

// A node, or an input or output, that stands in the way.
struct OnnxProblem {
    std::string node, op, reason;
    int opset;
};

struct OnnxResult {
    Model model;
    std::vector<OnnxProblem> problems;
    std::map<std::string, int> counts;    // what was done, how often
    size_t source_bytes = 0;              // of the tensors that were read
    std::vector<std::string> notes;       // where results may differ from ONNX's
    std::vector<std::string> data_files;  // that were read beside the model
    // The memory that the model's weights refer to.
    std::shared_ptr<const void> storage;
};

// Reads and converts a file. 0, or a negative code: then the reason is in the log, or every node
// that cannot be converted is in result->problems. Data files that the model names must lie in its
// folder or below.
int convert_onnx(const std::string& path, const OnnxOptions& options, OnnxResult* result);
// The same from memory; `folder` is where data files are, "" if there may be none.
int convert_onnx(const void* data, size_t size, const std::string& folder,
                 const OnnxOptions& options, OnnxResult* result);

// For a file that convert_onnx refuses with these options: options with which it converts, as words
// of a command line ("--constant sr=16000 --shape input=1,576"); "" if none that can be tried
// within this many seconds (0: any number) does.
std::string suggest_options(const std::string& path, const OnnxOptions& options, double seconds);

// The page docs/onnx.md: which operators are supported, and how far.
std::string onnx_operator_page();

}  // namespace quoll

#endif
