// Sizes that may be known only when the net runs.
#ifndef QUOLL_TOOLS_ONNX_DIM_H
#define QUOLL_TOOLS_ONNX_DIM_H

#include <stdint.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace quoll {
namespace onnx_tool {

// A number, or a symbol: two sizes with the same symbol are equal whatever it stands for. Symbol 0
// is a size of which nothing is known, and equals nothing.
struct Dim {
    int64_t value = -1;  // meaningful if known(); may be negative in shape arithmetic
    int symbol = -1;     // -1: a number

    Dim() : symbol(0) {}
    Dim(int64_t v) : value(v), symbol(-1) {}
    bool known() const { return symbol < 0; }
    bool is(int64_t v) const { return known() && value == v; }
};
bool same(const Dim& a, const Dim& b);
bool same(const std::vector<Dim>& a, const std::vector<Dim>& b);
bool all_known(const std::vector<Dim>& dims);
std::vector<int64_t> values_of(const std::vector<Dim>& dims);  // all must be known
std::vector<Dim> dims_of(const std::vector<int64_t>& values);

// Gives equal expressions the same symbol.
class Symbols {
public:
    Symbols() : entries_(1) {}
    Dim named(const std::string& name);
    // A size that occurs nowhere else yet.
    Dim fresh() { return named("?" + std::to_string(entries_.size())); }
    Dim add(const Dim& a, const Dim& b);
    Dim subtract(const Dim& a, const Dim& b);
    Dim multiply(const Dim& a, const Dim& b);
    Dim divide(const Dim& a, const Dim& b);  // rounded down
    Dim larger(const Dim& a, const Dim& b);
    Dim smaller(const Dim& a, const Dim& b);
    // Whether a is the smaller one of b and some other size. If that size is known and more than 1,
    // a may be broadcast to b only where they are equal.
    bool is_limited(const Dim& a, const Dim& b) const {
        return limits_.count({a.symbol, b.symbol}) != 0;
    }
    bool equal_if_broadcast(const Dim& a, const Dim& b) const {
        const auto found = limits_.find({a.symbol, b.symbol});
        return same(a, b) ||
               (found != limits_.end() && found->second.known() && found->second.value > 1);
    }
    int count() const { return (int)entries_.size(); }
    // Any other function of sizes, known by its text.
    Dim function(const std::string& text, const Dim& a);
    Dim function(const std::string& text, const Dim& a, const Dim& b);
    Dim product(const std::vector<Dim>& dims);
    std::string text(const Dim& d) const;
    // Whether it may be negative if all sizes are at least 1.
    bool may_be_negative(const Dim& d) const;
    // Finds size = factor * the product of the parts + offset; false if it is not such an
    // expression.
    bool parts_of(const Dim& size, int64_t* factor, std::vector<Dim>* parts, int64_t* offset) const;
    // Finds size = factor * other + offset; false if that is not known.
    bool follows_from(const Dim& size, const Dim& other, int64_t* factor, int64_t* offset) const;

private:
    // factor * the product of the symbols + offset; a symbol without parts is its own.
    struct Entry {
        std::string text;
        int64_t factor = 1, offset = 0;
        std::vector<int> parts;
    };
    Dim intern(const Entry& entry);
    Entry expand(const Dim& d) const;

    std::vector<Entry> entries_;
    std::map<std::string, int> by_text_;
    std::map<std::pair<int, int>, Dim> limits_;  // by the symbols of a and b of is_limited()
};

}  // namespace onnx_tool
}  // namespace quoll

#endif
