#include "mutate.h"

#include <ctype.h>
#include <string.h>

#include <algorithm>
#include <string>

namespace fuzz {

namespace {

const size_t kMostBytes = 100000;

Bytes bytes_of(const std::string& text) { return Bytes(text.begin(), text.end()); }

void replace(Bytes* x, size_t at, size_t size, const Bytes& by) {
    x->erase(x->begin() + (ptrdiff_t)at, x->begin() + (ptrdiff_t)(at + size));
    x->insert(x->begin() + (ptrdiff_t)at, by.begin(), by.end());
}

// A field of a protobuf message: where it begins, its value (behind key and length), its end.
struct Field {
    size_t begin, value, end;
    int wire;
};

bool read_varint(const Bytes& x, size_t* at, uint64_t* v) {
    *v = 0;
    for (int shift = 0; shift < 64 && *at < x.size(); shift += 7) {
        const uint8_t b = x[(*at)++];
        *v |= (uint64_t)(b & 127) << shift;
        if (!(b & 128)) return true;
    }
    return false;
}

Bytes varint(uint64_t v) {
    Bytes out;
    for (; v >= 128; v >>= 7) out.push_back((uint8_t)(v | 128));
    out.push_back((uint8_t)v);
    return out;
}

// Empty if the bytes are no message.
std::vector<Field> fields_of(const Bytes& x) {
    std::vector<Field> fields;
    for (size_t at = 0; at < x.size();) {
        Field f = {at, 0, 0, 0};
        uint64_t key, size;
        if (!read_varint(x, &at, &key) || key < 8) return {};
        f.wire = (int)(key & 7), f.value = at;
        if (f.wire == 0) {
            if (!read_varint(x, &at, &size)) return {};
        } else if (f.wire == 2) {
            if (!read_varint(x, &at, &size) || size > x.size() - at) return {};
            f.value = at, at += (size_t)size;
        } else if (f.wire == 1 || f.wire == 5) {
            at += f.wire == 1 ? 8 : 4;
        } else {
            return {};
        }
        if (at > x.size()) return {};
        f.end = at;
        fields.push_back(f);
    }
    return fields;
}

}  // namespace

uint64_t Mutator::odd_number() {
    static const uint64_t kOdd[] = {0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    7,
                                    8,
                                    15,
                                    16,
                                    31,
                                    64,
                                    127,
                                    128,
                                    255,
                                    256,
                                    1000,
                                    65535,
                                    65536,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x100000000,
                                    0x7fffffffffffffff};
    const uint64_t v = kOdd[number(sizeof(kOdd) / sizeof(kOdd[0]))];
    return number(4) ? v : ~v + 1;
}

Bytes Mutator::odd_text() {
    static const char* const kOdd[] = {
        "",        "nan",          "inf",          "-inf", "1e30", "1e-40", "-233",
        "-234",    "-23300=1",     "-23303=2,1,0", "0x10", "\"",   "1.",    "*(0w,2)",
        "/(0h,0)", "999999999999", "-1",           "0",    "=",    ","};
    if (number(2)) return bytes_of(std::to_string((int64_t)odd_number()));
    return bytes_of(kOdd[number(sizeof(kOdd) / sizeof(kOdd[0]))]);
}

void Mutator::change_bytes(Bytes* x) {
    const size_t at = number(x->size());
    switch (number(6)) {
        case 0:
            (*x)[at] ^= (uint8_t)(1u << number(8));
            break;
        case 1:
            (*x)[at] = (uint8_t)rng_();
            break;
        case 2: {
            const uint64_t v = odd_number();
            const size_t size = std::min<size_t>((size_t)1 << number(4), x->size() - at);
            memcpy(x->data() + at, &v, size);
            break;
        }
        case 3:
            replace(x, at, number(std::min<size_t>(x->size() - at, 64)) + 1, {});
            break;
        case 4: {
            const size_t size = number(std::min<size_t>(x->size() - at, 64)) + 1;
            const Bytes part(x->begin() + (ptrdiff_t)at,
                             x->begin() + (ptrdiff_t)std::min(at + size, x->size()));
            replace(x, number(x->size()), 0, part);
            break;
        }
        default: {
            const Bytes& other = any();
            if (other.empty()) return;
            const size_t from = number(other.size()), size = number(other.size() - from) + 1;
            replace(
                x, at, std::min(size, x->size() - at),
                Bytes(other.begin() + (ptrdiff_t)from, other.begin() + (ptrdiff_t)(from + size)));
        }
    }
}

// A number or word becomes another.
void Mutator::change_text(Bytes* x) {
    const auto in_word = [](uint8_t c) { return !isspace(c) && c != '=' && c != ',' && c != ':'; };
    size_t begin = number(x->size());
    while (begin > 0 && in_word((*x)[begin - 1])) begin--;
    size_t end = begin;
    while (end < x->size() && in_word((*x)[end])) end++;
    if (number(3)) return replace(x, begin, end - begin, odd_text());
    const Bytes& other = any();
    if (other.empty()) return;
    size_t from = number(other.size()), to = from;
    while (from > 0 && in_word(other[from - 1])) from--;
    while (to < other.size() && in_word(other[to])) to++;
    replace(x, begin, end - begin,
            Bytes(other.begin() + (ptrdiff_t)from, other.begin() + (ptrdiff_t)to));
}

// A line goes, comes twice, or another's comes.
void Mutator::change_lines(Bytes* x) {
    const auto line_at = [](const Bytes& b, size_t at) {
        size_t begin = at, end = at;
        while (begin > 0 && b[begin - 1] != '\n') begin--;
        while (end < b.size() && b[end] != '\n') end++;
        return std::make_pair(begin, std::min(end + 1, b.size()));
    };
    const auto own = line_at(*x, number(x->size()));
    if (number(3) == 0) return replace(x, own.first, own.second - own.first, {});
    const Bytes& other = number(2) ? *x : any();
    if (other.empty()) return;
    const auto line = line_at(other, number(other.size()));
    const Bytes text(other.begin() + (ptrdiff_t)line.first, other.begin() + (ptrdiff_t)line.second);
    replace(x, own.first, number(2) ? own.second - own.first : 0, text);
}

// Within a field that holds a message, a text or packed numbers, or of the fields themselves;
// lengths stay right. False if it is no message.
bool Mutator::change_message(Bytes* x, int depth) {
    const std::vector<Field> fields = fields_of(*x);
    if (fields.empty()) return false;
    const Field f = fields[number(fields.size())];
    Bytes key(x->begin() + (ptrdiff_t)f.begin, x->begin() + (ptrdiff_t)f.value);
    const Bytes whole(x->begin() + (ptrdiff_t)f.begin, x->begin() + (ptrdiff_t)f.end);
    const size_t how = number(8);
    if (how == 0) return replace(x, f.begin, f.end - f.begin, {}), true;
    if (how == 1) return replace(x, fields[number(fields.size())].begin, 0, whole), true;
    if (how == 2) {
        const Field g = fields[number(fields.size())];
        return replace(x, g.begin, g.end - g.begin, whole), true;
    }
    if (f.wire == 0) return replace(x, f.value, f.end - f.value, varint(odd_number())), true;
    if (f.wire != 2) {
        for (size_t i = f.value; i < f.end; i++) (*x)[i] = (uint8_t)rng_();
        return true;
    }
    Bytes value(x->begin() + (ptrdiff_t)f.value, x->begin() + (ptrdiff_t)f.end);
    if (value.empty()) {
        value = odd_text();
    } else if (depth > 8 || number(10) == 0 || !change_message(&value, depth + 1)) {
        // A name is rather replaced by another of the message.
        const Field g = fields[number(fields.size())];
        if (number(2) && g.wire == 2)
            value.assign(x->begin() + (ptrdiff_t)g.value, x->begin() + (ptrdiff_t)g.end);
        else
            change_bytes(&value);
    }
    size_t at = 0;
    uint64_t number_and_wire;
    read_varint(key, &at, &number_and_wire);
    Bytes made = varint(number_and_wire), size = varint(value.size());
    made.insert(made.end(), size.begin(), size.end());
    made.insert(made.end(), value.begin(), value.end());
    replace(x, f.begin, f.end - f.begin, made);
    return true;
}

Bytes Mutator::next() {
    Bytes x = any();
    for (size_t changes = 1 + number(4); changes > 0; changes--) {
        if (x.empty()) x = odd_text();
        if (x.empty()) return x;
        const bool text = std::count_if(x.begin(), x.end(), [](uint8_t c) {
                              return c < 9 || c > 126;
                          }) < (ptrdiff_t)(x.size() / 20);
        if (!text && number(8) && change_message(&x, 0)) continue;
        if (text && number(8))
            number(3) ? change_text(&x) : change_lines(&x);
        else
            change_bytes(&x);
        if (x.size() > kMostBytes) x.resize(kMostBytes);
    }
    return x;
}

}  // namespace fuzz
