// Patterns of nodes that together are one operator. A pattern is looked for when the last of its
// nodes is converted: then sizes and constants are known. The layers of the other nodes are removed
// later, because nothing reads them any more.
#ifndef QUOLL_TOOLS_ONNX_FUSE_H
#define QUOLL_TOOLS_ONNX_FUSE_H

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/converter.h"

namespace quoll {
namespace onnx_tool {

class Match;
struct Pattern {
    const char* last;            // operator of the node that it ends with
    const char* name;            // as the report calls it
    bool (*find)(Match& match);  // true when it was there and has been replaced
    bool scalars = false;        // the last node's inputs may have rank 0 without being constants
};
std::vector<Pattern> activation_patterns();
std::vector<Pattern> norm_patterns();
std::vector<Pattern> attention_patterns();
std::vector<Pattern> layout_patterns();
std::vector<Pattern> part_patterns();
std::vector<Pattern> conv_patterns();
std::vector<Pattern> quantized_patterns();

// Knows which node makes each value of a graph, and how often the value is read; kept up to date as
// patterns are replaced.
class Fusion {
public:
    // outputs: values that are also read from outside. cut: values that are inputs now, whatever
    // makes them.
    Fusion(const Graph& graph, const std::vector<std::string>& outputs,
           const std::set<std::string>& cut, Converter* converter);
    // Whether the node was converted as the end of a pattern.
    bool run(const Node& node);

private:
    friend class Match;
    void count_graph(const Graph& graph);
    void count_reads(const Node& node, int by);

    Converter& c_;
    std::unordered_map<std::string, const Node*> makers_;
    std::unordered_map<std::string, int> readers_;
    std::unordered_map<std::string, std::vector<const Node*>> reading_;  // of the graph as it was
    std::deque<Node> made_;
    std::unordered_map<std::string, std::string>
        emitted_;  // what a node is made of, and its output
};

// A product of a number and values.
struct Product {
    double factor = 1;
    std::vector<std::string> values;
};

// What a pattern asks about the nodes that lead to its last one, and how it replaces them.
class Match {
public:
    Match(Fusion& fusion, const Node& last, const char* name)
        : last(last), c(fusion.c_), f_(fusion), name_(name) {}
    const Node& last;
    Converter& c;

    // The value behind Identity, Dropout and casts between floats that do not round.
    std::string root(const std::string& value) const;
    bool same(const std::string& a, const std::string& b) const { return root(a) == root(b); }
    // The node that makes a value (of the operator, if one is named), null if there is none.
    const Node* maker(const std::string& value) const;
    const Node* maker(const std::string& value, const char* op) const;
    const Node* maker(const std::string& value, OpTraits trait) const;
    // The nodes of the graph that read a value.
    // The node that makes the root of a value that is no constant.
    const Node* root_maker(const std::string& value) const;
    const std::vector<const Node*>& readers(const std::string& value) const;
    const Value* value(const std::string& name) const { return c.find_value(name); }
    const Tensor* constant(const std::string& name) const;
    // A constant of one value.
    bool number(const std::string& name, double* v) const;
    // Whether it is that number, as exactly as the types of the pattern's constants can hold it.
    bool is_number(const std::string& name, double v) const;
    bool near(double have, double want) const;

    // An operator of two inputs, one of them a number; *x is the other. Sub and Div only with the
    // number behind.
    bool with_number(const Node* node, const char* op, double* v, std::string* x) const;
    // Value k x for this x.
    bool multiple(const std::string& value, const std::string& x, double* k) const;
    // All ways to see a value as a product.
    std::vector<Product> products(const std::string& value, int depth = 3) const;
    // Value k x^n for this x.
    bool power(const std::string& value, const std::string& x, int n, double* k) const;
    // Limits of x from below and above.
    bool clipped(const std::string& value, double* low, double* high, std::string* x) const;

    int64_t attr(const Node& node, const char* name, int64_t def) const;
    float attr_float(const Node& node, const char* name, float def) const;
    // Numbers of an attribute, or, in newer opsets, of an input.
    bool ints(const Node& node, const char* name, size_t input, std::vector<int64_t>* values) const;

    // The axes of a Transpose; empty if they are no order of its input's.
    std::vector<int64_t> order_of(const Node& transpose) const;

    // A node of some opset's operator for use as replacement; it gets the last one's outputs.
    Node node(const char* op, const std::vector<std::string>& inputs) const;
    std::string add_constant(const Tensor& t);
    // The sizes, which may be known only at run time, as a value of int64; "" if no blob has them.
    std::string add_sizes(const std::vector<Dim>& sizes);
    // Converts a node ahead of the replacement, unless there is one like it; the name of its
    // output,
    // "" if that failed.
    std::string emit(const char* op, const std::vector<std::string>& inputs,
                     const std::function<void(Node*)>& set = nullptr);
    // Whether the nodes between these inputs and the last one are read by one another only.
    bool closed(const std::vector<std::string>& inputs) const;
    // Puts a node in place of all those between its inputs and the last one. False when one of them
    // is needed besides, or the node cannot be converted.
    bool replace(const Node& node) { return replace(node, node.inputs); }
    bool replace(const Node& node, const std::vector<std::string>& inputs);
    // The same whoever else reads what lies between: for a replacement that costs less anyway.
    bool replace_open(const Node& node);
    // replace() with a function in place of an operator's.
    bool replace_by(const Node& node, const std::vector<std::string>& inputs,
                    const std::function<bool(Op&)>& convert);

private:
    bool between(const std::vector<std::string>& inputs, std::set<const Node*>* nodes) const;
    bool only_sizes(const Node& node, const std::set<const Node*>& nodes, int depth) const;
    void commit(const Node& node, const std::set<const Node*>& gone);

    Fusion& f_;
    const char* name_;
    // Relative; exporters write constants with six digits or more.
    mutable double rounding_ = 1e-5;
};

void set_int(Node* node, const char* name, int64_t value);
void set_float(Node* node, const char* name, float value);
void set_string(Node* node, const char* name, const char* value);
void set_ints(Node* node, const char* name, const std::vector<int64_t>& values);

}  // namespace onnx_tool
}  // namespace quoll

#endif
