#include "quoll/paramdict.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "quoll/datawriter.h"
#include "quoll/log.h"
#include "quoll/platform.h"
#include "quoll/status.h"
#include "runtime/exceptions.h"
#include "runtime/log_mute.h"
#include "runtime/number_text.h"
#include "runtime/text_reader.h"

namespace quoll {

namespace {

// More elements than any real parameter array has; guards binary counts.
const int kMaxArrayLength = 1 << 24;
// Sizes of a layer's outputs.
const int kShapeHints = 30;
// Longest text of one value; longer ones are errors.
const size_t kMaxTokenLength = 1 << 20;

struct Param {
    ParamDict::Type type = ParamDict::kNone;
    union {
        int i;
        float f;
    };
    Mat array;
    std::string text;
    Param() : i(0) {}
};

float to_float(int v) { return (float)v; }

// Truncates; out of range clamps, NaN is 0.
int to_int(float v) {
    if (v >= 2147483648.f) return INT_MAX;
    if (v <= -2147483648.f) return INT_MIN;
    return v == v ? (int)v : 0;
}

struct Number {
    bool is_float = false;
    int i = 0;
    float f = 0.f;
    float as_float() const { return is_float ? f : to_float(i); }
};

bool looks_like_float(const std::string& s) {
    return s.find_first_of(".eEnN") != std::string::npos;  // 1.5, 1e3, inf, nan
}

bool parse_number(const std::string& token, Number* out) {
    const char* first = token.data();
    const char* last = first + token.size();
    if (first != last && *first == '+') first++;
    if (first == last) return false;
    // As C++ writes floats: "2.f".
    if (last[-1] == 'f' && token.find('.') != std::string::npos) last--;
    std::from_chars_result r{};
    out->is_float = looks_like_float(token);
    if (!out->is_float) {
        r = read_number(first, last, &out->i);
        if (r.ec == std::errc() && r.ptr == last) return true;
        out->is_float = true;  // an integer beyond 32 bits is still a number
    }
    r = read_number(first, last, &out->f);
    if (r.ec == std::errc::result_out_of_range && r.ptr == last) {
        // read_number leaves the value alone: underflow is zero, overflow infinite.
        double wide = 0;
        const auto w = read_number(first, last, &wide);
        const bool huge = w.ec == std::errc() ? fabs(wide) > 1
                                              : token.find("e-") == std::string::npos &&
                                                    token.find("E-") == std::string::npos;
        out->f = huge ? INFINITY : 0.f;
        if (*first == '-') out->f = -out->f;
        return true;
    }
    return r.ec == std::errc() && r.ptr == last;
}

// Skips blanks; returns the next character of the line, or -1 at its end (the line end is
// consumed).
int next_on_line(const DataReader& dr) {
    int ch = next_of_text(dr);
    while (ch == ' ' || ch == '\t' || ch == '\r') ch = next_of_text(dr);
    return ch == '\n' ? -1 : ch;
}

bool is_blank(int ch) { return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n' || ch == -1; }

// Reads up to a blank (which is put back) or a character of `stops` (which is consumed and
// returned).
int read_token(const DataReader& dr, const char* stops, std::string* token) {
    token->clear();
    for (;;) {
        const int ch = next_of_text(dr);
        if (is_blank(ch)) {
            if (ch != -1) dr.unget_char(ch);
            return -1;
        }
        if (strchr(stops, ch)) return ch;
        if (token->size() >= kMaxTokenLength) return -2;
        token->push_back((char)ch);
    }
}

bool read_quoted(const DataReader& dr, std::string* text) {
    text->clear();
    for (;;) {
        const int ch = next_of_text(dr);
        if (ch == '\n') dr.unget_char(ch);
        if (ch == -1 || ch == '\n' || text->size() >= kMaxTokenLength) return false;
        if (ch == '"') return true;
        text->push_back((char)ch);
    }
}

// What may be a string without quotes.
bool is_word(const std::string& token) {
    const bool letter = !token.empty() && ((token[0] >= 'a' && token[0] <= 'z') ||
                                           (token[0] >= 'A' && token[0] <= 'Z'));
    return letter && token.find('"') == std::string::npos;
}

// Stores ints if all are ints, floats otherwise.
int store_numbers(const std::vector<Number>& numbers, Param* p) {
    bool any_float = false;
    for (const Number& v : numbers) any_float |= v.is_float;
    p->type = any_float ? ParamDict::kFloatArray : ParamDict::kIntArray;
    p->array = Mat();
    if (numbers.empty()) return kOk;
    p->array.create(Shape((int)numbers.size(), any_float ? DType::f32 : DType::s32));
    if (p->array.empty()) return kOutOfMemory;
    for (size_t i = 0; i < numbers.size(); i++) {
        if (any_float)
            ((float*)p->array.data)[i] = numbers[i].as_float();
        else
            ((int*)p->array.data)[i] = numbers[i].i;
    }
    return kOk;
}

// True for a Mat tagged f32 that somebody filled with ints, as programs written for ncnn do, whose
// Mats have no dtype. As floats, ints are denormals, tiny numbers or NaN; a float parameter is none
// of these.
bool holds_ints(const Mat& m) {
    if (m.empty() || m.dtype != DType::f32 || m.dims != 1 || m.elempack != 1) return false;
    bool any = false;
    for (int i = 0; i < m.w; i++) {
        int bits;
        memcpy(&bits, (const float*)m.data + i, 4);
        const float size = fabsf(m[i]);
        if ((size >= 1e-30f && size <= 1e30f) || size >= FLT_MAX) return false;
        any |= bits != 0;
    }
    return any;
}

}  // namespace

struct ParamDict::Private {
    // Most layers have few parameters: only those that are set are stored, sorted by id; `ids` has
    // a bit for each.
    std::vector<Param> held;
    uint32_t ids = 0;
    static_assert(kMaxParamId < 32, "a bit for each");

    size_t place(int id) const { return (size_t)__builtin_popcount(ids & ((1u << id) - 1)); }
    const Param* find(int id) const {
        return id >= 0 && id <= kMaxParamId && ids >> id & 1 ? &held[place(id)] : nullptr;
    }
    void remove(int id) {
        if (find(id)) held.erase(held.begin() + (ptrdiff_t)place(id)), ids &= ~(1u << id);
    }
    // The parameter, which is added if it is missing; null if the id is out of range. The pointer
    // is valid until the next parameter is added.
    Param* slot(int id) {
        if (id >= 0 && id <= kMaxParamId) {
            if (!find(id)) held.emplace(held.begin() + (ptrdiff_t)place(id)), ids |= 1u << id;
            return &held[place(id)];
        }
        QUOLL_LOGE("[ParamDict] id: expected 0 to %d, got %d", kMaxParamId, id);
        return nullptr;
    }
    int load_text_value(const DataReader& dr, const char* where, int id, bool old_array);
    int load_hints(const DataReader& dr, const char* where, bool old_array);
    int load_binary_array(const DataReader& dr, const char* where, Param* p, int id);
    int load_binary_string(const DataReader& dr, const char* where, Param* p, int id);
    int check_writable(const char* where, bool text) const;
};

ParamDict::ParamDict() : d(new Private) {}
ParamDict::ParamDict(const ParamDict& other) : d(new Private(*other.d)) {}
ParamDict& ParamDict::operator=(const ParamDict& other) {
    *d = *other.d;
    return *this;
}
ParamDict::~ParamDict() { delete d; }

ParamDict::Type ParamDict::type(int id) const {
    const Param* p = d->find(id);
    return p ? p->type : kNone;
}

int ParamDict::get(int id, int def) const {
    const Param* p = d->find(id);
    if (!p) return def;
    if (p->type == kFloat) return to_int(p->f);
    return p->type == kInt || p->type == kNumber ? p->i : def;
}

float ParamDict::get(int id, float def) const {
    const Param* p = d->find(id);
    if (!p) return def;
    if (p->type == kInt) return to_float(p->i);
    return p->type == kFloat || p->type == kNumber ? p->f : def;
}

Mat ParamDict::get(int id, const Mat& def) const {
    const Param* p = d->find(id);
    return p && p->type >= kNumberArray && p->type <= kFloatArray ? p->array : def;
}

std::string ParamDict::get(int id, const std::string& def) const {
    const Param* p = d->find(id);
    return p && p->type == kString ? p->text : def;
}

// A list for which there is no memory must not look like an empty list.
static Mat new_list(int count, DType dtype) {
    const Mat list(Shape(count, dtype));
    if (list.empty()) QUOLL_OUT_OF_MEMORY();
    return list;
}

Mat ParamDict::get_floats(int id, const Mat& def) const {
    const Param* p = d->find(id);
    const Mat m = get(id, def);
    if (m.empty() || m.dtype != DType::s32 || (p && p->type == kNumberArray)) return m;
    Mat out = new_list(m.w, DType::f32);
    for (int i = 0; i < out.w; i++) ((float*)out.data)[i] = to_float(((const int*)m.data)[i]);
    return out;
}

Mat ParamDict::get_ints(int id, const Mat& def) const {
    const Param* p = d->find(id);
    const Mat m = get(id, def);
    if (m.empty()) return m;
    Mat out = new_list(m.w, DType::s32);
    const bool floats = p && p->type == kFloatArray;
    for (int i = 0; i < out.w; i++)
        ((int*)out.data)[i] = floats ? to_int(((const float*)m.data)[i]) : ((const int*)m.data)[i];
    return out;
}

void ParamDict::set(int id, int value) {
    if (Param* p = d->slot(id)) p->type = kInt, p->i = value;
}
void ParamDict::set(int id, float value) {
    if (Param* p = d->slot(id)) p->type = kFloat, p->f = value;
}
void ParamDict::set(int id, const Mat& value) {
    if (!value.empty() && value.dtype != DType::f32 && value.dtype != DType::s32) {
        QUOLL_LOGE("[ParamDict] parameter %d: expected an array of f32 or s32, got %s", id,
                   dtype_name(value.dtype));
        d->remove(id);
        return;
    }
    Param* const p = d->slot(id);
    if (!p) return;
    p->array = value;
    if (holds_ints(value)) p->array.dtype = DType::s32;
    p->type = p->array.dtype == DType::s32 ? kIntArray : kFloatArray;
}
void ParamDict::set(int id, const std::string& value) {
    if (Param* p = d->slot(id)) p->type = kString, p->text = value;
}
void ParamDict::copy(int id, const ParamDict& from) {
    if (&from == this) return;
    const Param* const source = from.d->find(id);
    if (!source) return d->remove(id);
    if (Param* p = d->slot(id)) *p = *source;
}
void ParamDict::clear() { *d = Private(); }

int ParamDict::Private::load_text_value(const DataReader& dr, const char* where, int id,
                                        bool old_array) {
    Param* p = slot(id);
    std::string token;
    int ch = next_of_text(dr);
    if (ch == '"' && !old_array) {
        p->type = kString;
        if (read_quoted(dr, &p->text)) return kOk;
        QUOLL_LOGE("%s parameter %d: the string has no closing quote", where, id);
        return kError;
    }
    if (ch != -1) dr.unget_char(ch);
    std::vector<Number> numbers;
    int stop = ',', announced = -1;
    while (stop == ',') {
        stop = read_token(dr, ",", &token);
        if (token.empty() && stop == -1 && numbers.size() == 1 && !old_array)
            return store_numbers(numbers, p);  // "3=1,": an array of one
        Number v;
        const bool good = stop != -2 && parse_number(token, &v);
        if (!good && stop != -2 && !old_array && numbers.empty() && is_word(token)) {
            p->type = kString, p->text = token;
            if (stop == -1) return kOk;
            stop = read_token(dr, "", &token);
            p->text += "," + token;
            if (stop != -2 && token.find('"') == std::string::npos) return kOk;
        }
        if (!good) {
            QUOLL_LOGE("%s parameter %d: expected a number, got '%.40s'", where, id, token.c_str());
            return kError;
        }
        if (old_array && announced < 0) {
            announced = v.is_float ? -1 : v.i;
            if (announced < 0) {
                QUOLL_LOGE("%s parameter %d: bad array length '%.40s'", where, id, token.c_str());
                return kError;
            }
            continue;
        }
        numbers.push_back(v);
    }
    if (old_array && (size_t)announced != numbers.size()) {
        QUOLL_LOGE("%s parameter %d: array of %d values, got %zu", where, id, announced,
                   numbers.size());
        return kError;
    }
    if (old_array || numbers.size() > 1) return store_numbers(numbers, p);
    p->type = numbers[0].is_float ? kFloat : kInt;
    if (numbers[0].is_float)
        p->f = numbers[0].f;
    else
        p->i = numbers[0].i;
    return kOk;
}

// Nothing relies on hints of sizes: what cannot be read is skipped.
int ParamDict::Private::load_hints(const DataReader& dr, const char* where, bool old_array) {
    int status;
    {
        LogMute quiet;
        status = load_text_value(dr, where, kShapeHints, old_array);
    }
    if (status == kOk) return kOk;
    remove(kShapeHints);
    QUOLL_LOGD("%s parameter %d: the hints of sizes cannot be read and are ignored", where,
               kShapeHints);
    std::string rest;
    while (read_token(dr, "", &rest) == -2) {
    }
    return kOk;
}

// Array ids are stored as -23300 - id.
static const int kArrayBase = -23300;
// In the binary form strings are stored as -23400 - id, and -233 ends the list.
static const int kStringBase = -23400;
static const int kEndOfParams = -233;

static int refuse_text(const char* where) {
    QUOLL_LOGE("%s text params are not part of this build (QUOLL_STRING is off)", where);
    return kError;
}

int ParamDict::load_param(const DataReader& dr, const char* where) {
    if (!QUOLL_STRING) return refuse_text(where);
    return catch_no_memory("ParamDict", [&]() -> int {
        clear();
        std::string token;
        for (int ch; (ch = next_on_line(dr)) != -1;) {
            dr.unget_char(ch);
            const int stop = read_token(dr, "=", &token);
            Number key;
            if (stop != '=' || !parse_number(token, &key) || key.is_float) {
                QUOLL_LOGE("%s parameters: expected id=value, got '%.40s'", where, token.c_str());
                return kError;
            }
            const bool array = key.i <= kArrayBase;
            const int id = array ? (int)((long long)kArrayBase - key.i) : key.i;
            if (id < 0 || id > kMaxParamId) {
                QUOLL_LOGE("%s parameter id: expected 0 to %d, got %d", where, kMaxParamId, key.i);
                return kError;
            }
            QUOLL_RETURN_IF_ERROR(id == kShapeHints ? d->load_hints(dr, where, array)
                                                    : d->load_text_value(dr, where, id, array));
        }
        return kOk;
    });
}

static bool read_int(const DataReader& dr, int* v) { return dr.read(v, 4) == 4; }

// A count of `unit`-byte items that the source can still hold.
static bool plausible_count(const DataReader& dr, int count, size_t unit) {
    return count >= 0 && count <= kMaxArrayLength && (size_t)count * unit <= dr.remaining();
}

int ParamDict::Private::load_binary_array(const DataReader& dr, const char* where, Param* p,
                                          int id) {
    int count = 0;
    if (!read_int(dr, &count) || !plausible_count(dr, count, 4)) {
        QUOLL_LOGE("%s parameter %d: bad array length %d", where, id, count);
        return kError;
    }
    p->type = kNumberArray;
    p->array = Mat();
    if (count == 0) return kOk;
    p->array.create(Shape(count, DType::f32));
    if (p->array.empty()) return kOutOfMemory;
    if (dr.read(p->array.data, (size_t)count * 4) == (size_t)count * 4) return kOk;
    QUOLL_LOGE("%s parameter %d: the file ends inside an array of %d values", where, id, count);
    return kError;
}

int ParamDict::Private::load_binary_string(const DataReader& dr, const char* where, Param* p,
                                           int id) {
    int length = 0;
    if (!read_int(dr, &length) || !plausible_count(dr, length, 1)) {
        QUOLL_LOGE("%s parameter %d: bad string length %d", where, id, length);
        return kError;
    }
    p->type = kString;
    std::string padded(align_size((size_t)length, 4), '\0');
    if (!padded.empty() && dr.read(&padded[0], padded.size()) != padded.size()) {
        QUOLL_LOGE("%s parameter %d: the file ends inside a string of %d bytes", where, id, length);
        return kError;
    }
    p->text = padded.substr(0, length);
    return kOk;
}

int ParamDict::load_param_bin(const DataReader& dr, const char* where) {
    return catch_no_memory("ParamDict", [&]() -> int {
        clear();
        for (;;) {
            int key = 0;
            if (!read_int(dr, &key)) {
                QUOLL_LOGE("%s parameters: the file ends before their end marker %d", where,
                           kEndOfParams);
                return kError;
            }
            if (key == kEndOfParams) return kOk;
            const bool text = key <= kStringBase, array = !text && key <= kArrayBase;
            const long long id = text    ? (long long)kStringBase - key
                                 : array ? (long long)kArrayBase - key
                                         : key;
            if (id < 0 || id > kMaxParamId) {
                QUOLL_LOGE("%s parameter id: expected 0 to %d, got %d", where, kMaxParamId, key);
                return kError;
            }
            Param* p = d->slot((int)id);
            if (text) {
                QUOLL_RETURN_IF_ERROR(d->load_binary_string(dr, where, p, (int)id));
            } else if (array) {
                QUOLL_RETURN_IF_ERROR(d->load_binary_array(dr, where, p, (int)id));
            } else {
                p->type = kNumber;
                if (!read_int(dr, &p->i)) {
                    QUOLL_LOGE("%s parameter %lld: the file ends before its value", where, id);
                    return kError;
                }
            }
        }
    });
}

int ParamDict::Private::check_writable(const char* where, bool text) const {
    for (int id = 0; id <= kMaxParamId; id++) {
        const Param* const one = find(id);
        if (!one) continue;
        const Param& p = *one;
        const bool array = p.type >= kNumberArray && p.type <= kFloatArray;
        if (array && !p.array.empty() &&
            (p.array.dims != 1 || p.array.elempack != 1 || p.array.n != 1 ||
             (p.array.dtype != DType::f32 && p.array.dtype != DType::s32))) {
            QUOLL_LOGE("%s parameter %d: expected a 1-D array of f32 or s32, got %d axes of %s",
                       where, id, p.array.dims, dtype_name(p.array.dtype));
            return kError;
        }
        if (text && p.type == kString && p.text.find_first_of("\"\n") != std::string::npos) {
            QUOLL_LOGE("%s parameter %d: a string with a quote or a line end has no text form",
                       where, id);
            return kError;
        }
    }
    return kOk;
}

namespace {

// A number that a binary param left untyped: bits of small ints are denormal floats or NaNs, which
// no model has. -2^23 is the bits of -inf.
bool looks_like_int(int bits) { return bits > -(1 << 23) && bits < 1 << 23; }

float as_float(int bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

std::string array_text(ParamDict::Type type, const Mat& m) {
    const int* bits = m;
    bool ints = type == ParamDict::kIntArray;
    if (type == ParamDict::kNumberArray) ints = std::all_of(bits, bits + m.w, looks_like_int);
    std::string text;
    for (int i = 0; i < m.w; i++)
        text += "," + (ints ? std::to_string(bits[i]) : float_to_text(as_float(bits[i])));
    return text;
}

int write_all(const DataWriter& dw, const std::string& bytes, const char* where) {
    if (dw.write(bytes.data(), bytes.size()) == bytes.size()) return kOk;
    QUOLL_LOGE("%s parameters: %zu bytes could not be written", where, bytes.size());
    return kError;
}

void append_int(std::string* bytes, int v) { bytes->append((const char*)&v, 4); }

}  // namespace

int ParamDict::save_param(const DataWriter& dw, const char* where) const {
    if (!QUOLL_STRING) return refuse_text(where);
    return catch_no_memory("ParamDict", [&]() -> int {
        QUOLL_RETURN_IF_ERROR(d->check_writable(where, true));
        std::string text;
        for (int id = 0; id <= kMaxParamId; id++) {
            const Param* const one = d->find(id);
            if (!one) continue;
            const Param& p = *one;
            const bool array = p.type >= kNumberArray && p.type <= kFloatArray;
            text += " " + std::to_string(array ? kArrayBase - id : id) + "=";
            if (array)
                text +=
                    std::to_string(p.array.empty() ? 0 : p.array.w) + array_text(p.type, p.array);
            else if (p.type == kString)
                text += "\"" + p.text + "\"";
            else if (p.type == kInt || (p.type == kNumber && looks_like_int(p.i)))
                text += std::to_string(p.i);
            else
                text += float_to_text(p.f);
        }
        return write_all(dw, text, where);
    });
}

int ParamDict::save_param_bin(const DataWriter& dw, const char* where) const {
    return catch_no_memory("ParamDict", [&]() -> int {
        QUOLL_RETURN_IF_ERROR(d->check_writable(where, false));
        std::string bytes;
        for (int id = 0; id <= kMaxParamId; id++) {
            const Param* const one = d->find(id);
            if (!one) continue;
            const Param& p = *one;
            if (p.type == kString) {
                append_int(&bytes, kStringBase - id);
                append_int(&bytes, (int)p.text.size());
                bytes += p.text;
                bytes.resize(align_size(bytes.size(), 4));
            } else if (p.type >= kNumberArray) {
                const int count = p.array.empty() ? 0 : p.array.w;
                append_int(&bytes, kArrayBase - id);
                append_int(&bytes, count);
                if (count) bytes.append((const char*)p.array.data, (size_t)count * 4);
            } else {
                append_int(&bytes, id);
                append_int(&bytes, p.i);
            }
        }
        append_int(&bytes, kEndOfParams);
        return write_all(dw, bytes, where);
    });
}

std::string float_to_text(float value) {
    if (value != value) return "nan";
    char buffer[64];
    std::string text(buffer, write_number(buffer, buffer + sizeof(buffer), value));
    if (!looks_like_float(text)) text += ".0";
    return text;
}

}  // namespace quoll
