// Options with which a model that was refused may be converted.
#ifndef QUOLL_TOOLS_ONNX_SUGGEST_H
#define QUOLL_TOOLS_ONNX_SUGGEST_H

#include <string>
#include <vector>

#include "onnx/convert.h"
#include "onnx/graph.h"

namespace quoll {
namespace onnx_tool {

// What may be added to the options, the least first: sizes that the file leaves open, numbers for
// inputs that hold one, which may decide a condition. Options that are given stay.
std::vector<OnnxOptions> candidate_options(const OnnxModel& model, const OnnxOptions& given);
// What `options` say beyond `given`, as words of a command line.
std::string option_text(const OnnxOptions& given, const OnnxOptions& options);

// "16000" or "1,2" as numbers; false if it is none.
bool read_numbers(const std::string& text, std::vector<double>* numbers);

}  // namespace onnx_tool
}  // namespace quoll

#endif
