// Size expressions: strings in param files that compute sizes from the sizes of a layer's inputs.
//
//   *(0w,2),-1,+(0c,1c)
//
// is a list of three values: twice the width of input 0, -1, and the sum of two channel counts. A
// term is a number, a size (input index followed by w, h, d, c or n), or function(term, ...).
// Numbers without fraction are ints, others f32; + - * // max min abs neg sign square keep ints
// ints, / and the transcendental functions give f32, floor ceil round trunc give ints, and / or xor
// lshift rshift take ints only. On ints // drops the fraction as C does, on f32 it rounds down. The
// final value of a term of the list loses its fraction.
#ifndef QUOLL_LAYER_EXPRESSION_H
#define QUOLL_LAYER_EXPRESSION_H

#include <string>
#include <vector>

#include "quoll/layer.h"

namespace quoll {

class ExpressionParser;

class Expression {
public:
    // Longest text, and deepest nesting of parentheses, that parse() takes.
    enum { kMaxLength = 4096, kMaxDepth = 64 };

    // Reads the text; on an error calls layer.fail with the text and position. An empty text has no
    // values.
    int parse(const Layer& layer, const char* name, const std::string& text);

    // The values for inputs of these sizes. Fails if an input is missing, on a division by zero,
    // and on values that do not fit into an int.
    int evaluate(const Layer& layer, const std::vector<Shape>& inputs,
                 std::vector<int>* values) const;

    bool empty() const { return ends_.empty(); }
    // How many values the list has, and how many inputs it refers to (highest index + 1).
    int count() const { return (int)ends_.size(); }
    int input_count() const { return input_count_; }
    // Does it refer to a batch count?
    bool uses_batch() const;

private:
    friend class ExpressionParser;

    // An intermediate value: an int, or an f32 number.
    struct Value {
        bool is_int;
        long long i;
        float f;
        float number() const { return is_int ? (float)i : f; }
    };
    enum NodeKind : unsigned char { kNumber, kSize, kFunction };
    // In postfix order: operands come before their function.
    struct Node {
        NodeKind kind;
        Value number;  // kNumber
        int input;     // kSize: index of the input
        char axis;     // kSize: 'w', 'h', 'd', 'c' or 'n'
        int function;  // kFunction: index in the table of functions
    };
    int apply(const Layer& layer, int function, const Value* args, Value* result) const;

    std::string text_;
    std::vector<Node> nodes_;
    std::vector<size_t> ends_;  // for each value of the list, the end of its nodes
    int input_count_ = 0;
};

}  // namespace quoll

#endif
