// Operators that are written in terms of others: nodes made on the spot and converted at once.
#ifndef QUOLL_TOOLS_ONNX_NODES_H
#define QUOLL_TOOLS_ONNX_NODES_H

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "onnx/converter.h"

namespace quoll {
namespace onnx_tool {

typedef std::map<std::string, Attribute> Attributes;
Attribute attribute_of(int64_t value);
Attribute attribute_of(float value);
Attribute attribute_of(const std::string& value);
Attribute attribute_of(const std::vector<int64_t>& values);

// While it lives, ai.onnx nodes have the meaning of opset 20. Values go by their names; "" is one
// that could not be made, and everything made of it is "", too. The first failure becomes the
// reason of the node that is being converted.
class Nodes {
public:
    explicit Nodes(Op& op);
    ~Nodes();
    Nodes(const Nodes&) = delete;
    Nodes& operator=(const Nodes&) = delete;

    std::string add(const std::string& type, const std::vector<std::string>& inputs,
                    const Attributes& attributes = {});
    std::vector<std::string> add_many(const std::string& type,
                                      const std::vector<std::string>& inputs,
                                      const Attributes& attributes, int outputs);
    // Converts a node as it stands, its outputs included.
    bool run(const Node& node);
    // The answer of a layer that no operator of ONNX is.
    std::string emit(const std::string& type, const std::function<bool(Op&)>& convert);

    std::string constant(const Tensor& tensor);
    std::string ints(const std::vector<int64_t>& values) {
        return constant(Tensor::of_ints(values));
    }
    std::string scalar(float value) { return constant(Tensor::of_float(value)); }
    // The name of an input of the node, "" if it is absent.
    std::string in(int i) const;
    Value* value(const std::string& name) const { return op_.c.find_value(name); }

    std::string reshape(const std::string& x, const std::vector<int64_t>& sizes);
    std::string squeeze(const std::string& x, const std::vector<int64_t>& axes) {
        return add("Squeeze", {x, ints(axes)});
    }
    std::string transpose(const std::string& x, const std::vector<int64_t>& perm);
    std::string slice(const std::string& x, int64_t axis, int64_t start, int64_t end);
    std::string cast(const std::string& x, ElementType type);
    // The same numbers under another type: strings as their places.
    std::string as_type(const std::string& x, ElementType type);

    // The value as an output of the node; false if either failed.
    bool set(int output, const std::string& name);
    bool ok() const { return ok_; }

private:
    Node node_of(const std::string& type, int outputs) const;

    Op& op_;
    int opset_;
    bool ok_ = true;
};

}  // namespace onnx_tool
}  // namespace quoll

#endif
