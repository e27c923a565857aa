#include "onnx/dim.h"

#include <algorithm>

namespace quoll {
namespace onnx_tool {

// False if the result is no 64-bit integer: the size is then an unknown one.
static bool add_to(int64_t* a, int64_t b) { return !__builtin_add_overflow(*a, b, a); }
static bool multiply_by(int64_t* a, int64_t b) { return !__builtin_mul_overflow(*a, b, a); }

bool same(const Dim& a, const Dim& b) {
    return a.symbol == b.symbol && a.symbol != 0 && (!a.known() || a.value == b.value);
}

bool same(const std::vector<Dim>& a, const std::vector<Dim>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); i++)
        if (!same(a[i], b[i])) return false;
    return true;
}

bool all_known(const std::vector<Dim>& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.known(); });
}

std::vector<int64_t> values_of(const std::vector<Dim>& dims) {
    std::vector<int64_t> values;
    for (const Dim& d : dims) values.push_back(d.value);
    return values;
}

std::vector<Dim> dims_of(const std::vector<int64_t>& values) {
    return std::vector<Dim>(values.begin(), values.end());
}

Dim Symbols::named(const std::string& name) {
    if (name.empty()) return Dim();
    Entry entry;
    entry.text = name;
    const auto found = by_text_.find(name);
    Dim d;
    if (found != by_text_.end()) {
        d.symbol = found->second;
        return d;
    }
    d.symbol = (int)entries_.size();
    entry.parts.push_back(d.symbol);
    entries_.push_back(entry);
    by_text_[name] = d.symbol;
    return d;
}

Symbols::Entry Symbols::expand(const Dim& d) const {
    if (!d.known()) return entries_[d.symbol];
    Entry number;
    number.offset = d.value, number.factor = 0;
    return number;
}

Dim Symbols::intern(const Entry& entry) {
    if (entry.factor == 0) return Dim(entry.offset);
    std::string text;
    std::vector<int> parts = entry.parts;
    std::sort(parts.begin(), parts.end());
    if (parts.empty()) {
        int64_t value = entry.factor;
        return add_to(&value, entry.offset) ? Dim(value) : Dim();
    }
    for (int part : parts) text += (text.empty() ? "" : "*") + entries_[part].text;
    if (entry.factor != 1) text = std::to_string(entry.factor) + "*" + text;
    if (entry.offset) text = "(" + text + "+" + std::to_string(entry.offset) + ")";
    const auto found = by_text_.find(text);
    Dim d;
    if (found != by_text_.end()) {
        d.symbol = found->second;
        return d;
    }
    d.symbol = (int)entries_.size();
    Entry kept = entry;
    kept.text = text, kept.parts = parts;
    entries_.push_back(kept);
    by_text_[text] = d.symbol;
    return d;
}

Dim Symbols::add(const Dim& a, const Dim& b) {
    if (a.symbol == 0 || b.symbol == 0) return Dim();
    if (!a.known() && !b.known()) {
        const Entry x = expand(a), y = expand(b);
        std::vector<int> p = x.parts, q = y.parts;
        std::sort(p.begin(), p.end()), std::sort(q.begin(), q.end());
        if (p != q)
            return named("(" + std::min(text(a), text(b)) + "+" + std::max(text(a), text(b)) + ")");
        Entry sum = x;
        const bool fits = add_to(&sum.factor, y.factor) && add_to(&sum.offset, y.offset);
        return fits ? intern(sum) : Dim();
    }
    Entry sum = a.known() ? expand(b) : expand(a);
    return add_to(&sum.offset, a.known() ? a.value : b.value) ? intern(sum) : Dim();
}

Dim Symbols::subtract(const Dim& a, const Dim& b) { return add(a, multiply(b, Dim(-1))); }

Dim Symbols::multiply(const Dim& a, const Dim& b) {
    if (a.is(0) || b.is(0)) return Dim(0);
    if (a.symbol == 0 || b.symbol == 0) return Dim();
    if (a.known() && b.known()) {
        int64_t value = a.value;
        return multiply_by(&value, b.value) ? Dim(value) : Dim();
    }
    if (a.known() || b.known()) {
        Entry e = expand(a.known() ? b : a);
        const int64_t k = a.known() ? a.value : b.value;
        return multiply_by(&e.factor, k) && multiply_by(&e.offset, k) ? intern(e) : Dim();
    }
    // A sum is a factor of its own.
    const auto atom = [&](const Dim& d) {
        Entry e = expand(d);
        if (e.offset == 0) return e;
        e.parts.assign(1, d.symbol);
        e.factor = 1, e.offset = 0;
        return e;
    };
    Entry x = atom(a);
    const Entry y = atom(b);
    if (!multiply_by(&x.factor, y.factor)) return Dim();
    x.parts.insert(x.parts.end(), y.parts.begin(), y.parts.end());
    return intern(x);
}

Dim Symbols::divide(const Dim& a, const Dim& b) {
    if (a.symbol == 0 || b.symbol == 0 || b.is(0)) return Dim();
    if (b.is(-1)) return multiply(a, b);  // the least integer has no positive counterpart
    if (a.known() && b.known()) {
        const int64_t q = a.value / b.value;
        return Dim(q - (a.value % b.value != 0 && (a.value < 0) != (b.value < 0)));
    }
    if (a.is(0)) return Dim(0);
    Entry x = expand(a), y = expand(b);
    if (b.known()) y.factor = b.value, y.offset = 0;
    if (a.known()) x.factor = a.value, x.offset = 0;
    bool divides = y.offset == 0 && (y.factor > 0 || y.factor < -1) && x.factor % y.factor == 0 &&
                   (x.offset == 0 || (y.parts.empty() && x.offset % y.factor == 0));
    for (int part : y.parts) {
        const auto at = std::find(x.parts.begin(), x.parts.end(), part);
        divides = divides && at != x.parts.end();
        if (divides) x.parts.erase(at);
    }
    if (!divides) return named("floor(" + text(a) + "/" + text(b) + ")");
    x.factor /= y.factor, x.offset /= y.factor;
    return intern(x);
}

Dim Symbols::larger(const Dim& a, const Dim& b) {
    if (same(a, b)) return a;
    if (a.known() && b.known()) return Dim(std::max(a.value, b.value));
    return text(a) < text(b) ? function("max", a, b) : function("max", b, a);
}

Dim Symbols::smaller(const Dim& a, const Dim& b) {
    if (same(a, b)) return a;
    if (a.known() && b.known()) return Dim(std::min(a.value, b.value));
    const Dim least = text(a) < text(b) ? function("min", a, b) : function("min", b, a);
    if (least.symbol > 0 && a.symbol > 0) limits_[{least.symbol, a.symbol}] = b;
    if (least.symbol > 0 && b.symbol > 0) limits_[{least.symbol, b.symbol}] = a;
    return least;
}

Dim Symbols::function(const std::string& name, const Dim& a) {
    return a.symbol == 0 ? Dim() : named(name + "(" + text(a) + ")");
}

Dim Symbols::function(const std::string& name, const Dim& a, const Dim& b) {
    return a.symbol == 0 || b.symbol == 0 ? Dim()
                                          : named(name + "(" + text(a) + "," + text(b) + ")");
}

Dim Symbols::product(const std::vector<Dim>& dims) {
    Dim all(1);
    for (const Dim& d : dims) all = multiply(all, d);
    return all;
}

bool Symbols::parts_of(const Dim& size, int64_t* factor, std::vector<Dim>* parts,
                       int64_t* offset) const {
    if (size.symbol <= 0) return false;
    const Entry& entry = entries_[size.symbol];
    if (entry.parts.empty() || (entry.parts.size() == 1 && entry.parts[0] == size.symbol))
        return false;
    *factor = entry.factor, *offset = entry.offset;
    for (int part : entry.parts) {
        parts->emplace_back();
        parts->back().symbol = part;
    }
    return true;
}

bool Symbols::follows_from(const Dim& size, const Dim& other, int64_t* factor,
                           int64_t* offset) const {
    if (size.symbol <= 0 || other.symbol <= 0) return false;
    const Entry &x = entries_[size.symbol], &y = entries_[other.symbol];
    if (x.parts.empty() || x.parts != y.parts || y.factor <= 0 || x.factor % y.factor) return false;
    *factor = x.factor / y.factor;
    int64_t less = -*factor;
    *offset = x.offset;
    return multiply_by(&less, y.offset) && add_to(offset, less);
}

bool Symbols::may_be_negative(const Dim& d) const {
    if (d.known() || d.symbol <= 0) return !d.known() || d.value < 0;
    const Entry& entry = entries_[d.symbol];
    // What functions and sums of several sizes are made of says their name.
    for (int part : entry.parts)
        if (entries_[part].text.find('-') != std::string::npos) return true;
    int64_t least = entry.factor;
    return entry.factor < 0 || !add_to(&least, entry.offset) || least < 0;
}

std::string Symbols::text(const Dim& d) const {
    if (d.known()) return std::to_string(d.value);
    return d.symbol ? entries_[d.symbol].text : "?";
}

}  // namespace onnx_tool
}  // namespace quoll
