// An ONNX model as its file has it, free of protobuf.
#ifndef QUOLL_TOOLS_ONNX_GRAPH_H
#define QUOLL_TOOLS_ONNX_GRAPH_H

#include <stddef.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onnx/string_table.h"
#include "onnx/tensor.h"

namespace quoll {
namespace onnx_tool {

struct Graph;

struct Attribute {
    enum Kind { kNone, kFloat, kInt, kString, kTensor, kGraph, kFloats, kInts, kStrings, kOther };
    Kind kind = kNone;
    float f = 0;
    int64_t i = 0;
    std::string s;
    Tensor t;
    std::shared_ptr<Graph> g;
    std::vector<float> floats;
    std::vector<int64_t> ints;
    std::vector<std::string> strings;
    std::string reference;  // name of the function's attribute that this stands for
};

struct Node {
    std::string name, op, domain;
    std::string overload;  // of the functions of that name the one that is called
    std::vector<std::string> inputs, outputs;
    std::map<std::string, Attribute> attributes;

    // The name, or that of the first output.
    std::string label() const;
};

// A size that is known (value >= 0), has a name, or neither (value -1).
struct DimInfo {
    int64_t value = -1;
    std::string name;
};

struct ValueInfo {
    std::string name;
    bool is_tensor = true;
    ElementType type = ElementType::kUndefined;
    bool has_shape = false;
    std::vector<DimInfo> shape;
};

struct Graph {
    std::vector<Node> nodes;
    std::map<std::string, Tensor> initializers;
    std::vector<ValueInfo> inputs, outputs, infos;
};

struct OnnxModel {
    Graph graph;
    std::map<std::string, int> opsets;  // by domain, "" being ai.onnx
    std::string producer;
    std::shared_ptr<StringTable> strings = std::make_shared<StringTable>();
    std::shared_ptr<const void> file;  // keeps what tensors left in it; may be null
    std::vector<std::string> data_files;
};

// Reads a model, the data files that it refers to (beside it) included; model-local functions are
// put in place of the nodes that call them. False, with a message in *why, for what is no such
// file.
bool read_onnx(const std::string& path, OnnxModel* model, std::string* why);
// The same from memory; no data files are read if `folder` is "".
bool read_onnx(const void* data, size_t size, const std::string& folder, OnnxModel* model,
               std::string* why);

}  // namespace onnx_tool
}  // namespace quoll

#endif
