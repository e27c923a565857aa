// What operators of ai.onnx.ml share. Functions that return a name return "" after fail().
#ifndef QUOLL_TOOLS_ONNX_OPS_ML_H
#define QUOLL_TOOLS_ONNX_OPS_ML_H

#include <string>
#include <vector>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {
namespace ml {

typedef std::vector<float> Floats;
typedef std::vector<int64_t> Ints;

// What is said of operators of strings (string_table.h).
extern const char* const kStringsLimit;

Tensor floats_tensor(const Floats& values, const Ints& dims);
const std::vector<std::string>& strings_of(const Op& op, const char* name);

// The first input as floats [rows, features].
std::string matrix_input(Op& op, Nodes& n);
// It times coefficients [outputs, features], plus intercepts.
std::string linear(Op& op, Nodes& n, const Floats& coefficients, const Floats& intercepts,
                   int64_t outputs);

// A layer's floats [rows, columns] as a value.
std::string matrix_of(Op& op, const std::string& blob, const std::vector<Dim>& shape);

// What follows the sums. False after fail().
bool post_transform(Op& op, Nodes& n, const std::string& name, std::string* x);

// How many labels the node has.
size_t label_count(const Op& op);
// Indexes [rows] as the labels that they stand for.
bool set_labels(Op& op, Nodes& n, const std::string& indexes);
// The index of the largest score of each row.
std::string best_of(Nodes& n, const std::string& scores);

// The score of the first of two classes, when only the second has one: -s or 1 - s. With LOGISTIC
// it is that of -s.
enum TwoScores { kOpposite, kComplement };
// Scores of two classes of which the second has scores [rows, 1].
bool set_two_scores(Op& op, Nodes& n, std::string score, TwoScores other);
// And their labels: the second where the score is above the limit.
bool set_two_classes(Op& op, Nodes& n, const std::string& score, float limit, TwoScores other);

}  // namespace ml
}  // namespace onnx_tool
}  // namespace quoll

#endif
