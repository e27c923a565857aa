#include "layer/common/expression.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include <algorithm>

#include "quoll/expression.h"
#include "quoll/log.h"
#include "runtime/exceptions.h"
#include "runtime/number_text.h"

namespace quoll {

namespace {

// clang-format off
enum Function {
    ADD, SUB, MUL, FLOORDIV, MAX, MIN, ABS, NEG, SIGN, SQUARE,
    TRUNC, CEIL, FLOOR, ROUND,
    AND, OR, XOR, LSHIFT, RSHIFT,
    DIV, ATAN2, FMOD, POW, REMAINDER, LOGADDEXP,
    ACOS, ACOSH, ASIN, ASINH, ATAN, ATANH, COS, COSH, ERF, EXP, LOG, LOG10, RECIPROCAL, RSQRT,
    SIN, SINH, SQRT, TAN, TANH,
};

enum Kind {
    kNumeric,  // an int of ints, otherwise f32
    kRound,    // an int
    kBits,     // ints only
    kReal,     // f32
};

// Indexed by Function.
const struct {
    const char* name;
    int arguments;
    Kind kind;
} kFunctions[] = {
    {"+", 2, kNumeric}, {"-", 2, kNumeric}, {"*", 2, kNumeric}, {"//", 2, kNumeric},
    {"max", 2, kNumeric}, {"min", 2, kNumeric}, {"abs", 1, kNumeric}, {"neg", 1, kNumeric},
    {"sign", 1, kNumeric}, {"square", 1, kNumeric},
    {"trunc", 1, kRound}, {"ceil", 1, kRound}, {"floor", 1, kRound}, {"round", 1, kRound},
    {"and", 2, kBits}, {"or", 2, kBits}, {"xor", 2, kBits}, {"lshift", 2, kBits},
    {"rshift", 2, kBits},
    {"/", 2, kReal}, {"atan2", 2, kReal}, {"fmod", 2, kReal}, {"pow", 2, kReal},
    {"remainder", 2, kReal}, {"logaddexp", 2, kReal},
    {"acos", 1, kReal}, {"acosh", 1, kReal}, {"asin", 1, kReal}, {"asinh", 1, kReal},
    {"atan", 1, kReal}, {"atanh", 1, kReal}, {"cos", 1, kReal}, {"cosh", 1, kReal},
    {"erf", 1, kReal}, {"exp", 1, kReal}, {"log", 1, kReal}, {"log10", 1, kReal},
    {"reciprocal", 1, kReal}, {"rsqrt", 1, kReal}, {"sin", 1, kReal}, {"sinh", 1, kReal},
    {"sqrt", 1, kReal}, {"tan", 1, kReal}, {"tanh", 1, kReal},
};
// clang-format on
const int kFunctionCount = sizeof(kFunctions) / sizeof(kFunctions[0]);
static_assert(kFunctionCount == TANH + 1, "a line for each Function");

float of_one(int function, float a) {
    switch (function) {
        case ABS:
            return fabsf(a);
        case NEG:
            return -a;
        case SIGN:
            return a > 0.f ? 1.f : a < 0.f ? -1.f : 0.f;
        case SQUARE:
            return a * a;
        case TRUNC:
            return truncf(a);
        case CEIL:
            return ceilf(a);
        case FLOOR:
            return floorf(a);
        case ROUND:
            return roundf(a);
        case ACOS:
            return acosf(a);
        case ACOSH:
            return acoshf(a);
        case ASIN:
            return asinf(a);
        case ASINH:
            return asinhf(a);
        case ATAN:
            return atanf(a);
        case ATANH:
            return atanhf(a);
        case COS:
            return cosf(a);
        case COSH:
            return coshf(a);
        case ERF:
            return erff(a);
        case EXP:
            return expf(a);
        case LOG:
            return logf(a);
        case LOG10:
            return log10f(a);
        case RECIPROCAL:
            return 1.f / a;
        case RSQRT:
            return 1.f / sqrtf(a);
        case SIN:
            return sinf(a);
        case SINH:
            return sinhf(a);
        case SQRT:
            return sqrtf(a);
        case TAN:
            return tanf(a);
        case TANH:
            return tanhf(a);
    }
    return NAN;
}

float of_two(int function, float a, float b) {
    switch (function) {
        case ADD:
            return a + b;
        case SUB:
            return a - b;
        case MUL:
            return a * b;
        case FLOORDIV:
            return floorf(a / b);
        case MAX:
            return std::max(a, b);
        case MIN:
            return std::min(a, b);
        case DIV:
            return a / b;
        case ATAN2:
            return atan2f(a, b);
        case FMOD:
            return fmodf(a, b);
        case POW:
            return powf(a, b);
        case REMAINDER: {  // of the sign of b
            const float r = fmodf(a, b);
            return a * b < 0.f ? r + b : r;
        }
        case LOGADDEXP:
            return a == b ? a + logf(2.f) : std::max(a, b) + log1pf(expf(-fabsf(a - b)));
    }
    return NAN;
}

// Operands are 32-bit ints, so that no result leaves 64 bits; b is not 0 for a division and in
// [0, 31) for a shift.
long long of_ints(int function, long long a, long long b) {
    switch (function) {
        case ADD:
            return a + b;
        case SUB:
            return a - b;
        case MUL:
            return a * b;
        case FLOORDIV:
            return a / b;
        case MAX:
            return std::max(a, b);
        case MIN:
            return std::min(a, b);
        case ABS:
            return a < 0 ? -a : a;
        case NEG:
            return -a;
        case SIGN:
            return (a > 0) - (a < 0);
        case SQUARE:
            return a * a;
        case AND:
            return a & b;
        case OR:
            return a | b;
        case XOR:
            return a ^ b;
        case LSHIFT:
            return a * (1LL << b);
        case RSHIFT:
            return a >> b;
    }
    return a;  // TRUNC and its like leave ints alone
}

bool is_int_value(long long i) { return i >= INT_MIN && i <= INT_MAX; }
// Floats within these bounds fit into an int; -2^31 and 2^31 are exact as floats.
bool is_int_value(float f) { return f > -2147483648.f && f < 2147483648.f; }

}  // namespace

// Recursive descent over the text; the depth of the recursion is bounded by kMaxDepth.
class ExpressionParser {
public:
    // by_order: a function takes as many of the following terms as it has arguments, wherever
    // parentheses close.
    ExpressionParser(const Layer& layer, const char* name, const std::string& text, bool by_order,
                     Expression* out)
        : layer_(layer), name_(name), text_(text), by_order_(by_order), out_(out) {}

    int list() {
        for (;;) {
            QUOLL_RETURN_IF_ERROR(term(0));
            out_->ends_.push_back(out_->nodes_.size());
            if (at_ == text_.size()) return kOk;
            if (text_[at_] != ',') return fail("expected ',' or the end");
            at_++;
        }
    }
    // After list() failed.
    int say_error() const {
        return layer_.fail("%s: %s at character %zu of \"%.80s\"", name_, error_, at_,
                           text_.c_str());
    }

private:
    int fail(const char* what) {
        error_ = what;
        return kError;
    }
    void skip_closing() {
        while (by_order_ && at_ < text_.size() && text_[at_] == ')') at_++;
    }

    int term(int depth) {
        if (depth > Expression::kMaxDepth) return fail("too many parentheses within each other");
        const size_t end = std::min(text_.find_first_of("(),", at_), text_.size());
        const std::string word = text_.substr(at_, end - at_);
        if (end < text_.size() && text_[end] == '(') return call(word, end, depth);
        Expression::Node node = {};
        if (size_begins(word) && word.size() > 2) {
            // "0h//2": there are no infix operators, and ncnn reads the number in front.
            node.number = {true, word[0] - '0', 0.f};
            QUOLL_LOGW("[%s %s] %s: '%.40s' is the number %c: operators come first, as in //(0h,2)",
                       layer_.type.c_str(), layer_.name.c_str(), name_, word.c_str(), word[0]);
        } else if (size_begins(word)) {
            node.kind = Expression::kSize;
            node.input = word[0] - '0';
            node.axis = word[1];
            out_->input_count_ = std::max(out_->input_count_, node.input + 1);
        } else {
            QUOLL_RETURN_IF_ERROR(number(word, &node.number));
        }
        out_->nodes_.push_back(node);
        at_ = end;
        skip_closing();
        return kOk;
    }

    static bool size_begins(const std::string& word) {
        return word.size() >= 2 && word[0] >= '0' && word[0] <= '9' && strchr("whdcn", word[1]);
    }

    int number(const std::string& word, Expression::Value* value) {
        const char* const last = word.data() + word.size();
        const auto r = read_number(word.data(), last, &value->f);
        if (word.empty() || r.ec != std::errc() || r.ptr != last || !isfinite(value->f))
            return fail("expected a number, a size such as 0w, or function(...)");
        const auto whole = read_number(word.data(), last, &value->i);
        value->is_int = whole.ec == std::errc() && whole.ptr == last;
        if (!value->is_int && is_int_value(value->f) && truncf(value->f) == value->f) {
            value->is_int = true;  // 2.0 or 1e1
            value->i = (long long)value->f;
        }
        if (value->is_int && !is_int_value(value->i)) return fail("a number too large for an int");
        return kOk;
    }

    // word(term, ...) with the opening parenthesis at `open`. No word: the term itself.
    int call(const std::string& word, size_t open, int depth) {
        int function = 0;
        while (function < kFunctionCount && word != kFunctions[function].name) function++;
        if (function == kFunctionCount && !word.empty()) return fail("an unknown function");
        const int arguments = word.empty() ? 1 : kFunctions[function].arguments;
        at_ = open + 1;
        for (int i = 0; i < arguments; i++) {
            QUOLL_RETURN_IF_ERROR(term(depth + 1));
            const char expected = i + 1 < arguments ? ',' : ')';
            if (by_order_ && expected == ')') break;
            if (at_ == text_.size() || text_[at_] != expected)
                return fail(expected == ',' ? "expected ',' and another argument" : "expected ')'");
            at_++;
        }
        if (word.empty()) return kOk;
        Expression::Node node = {};
        node.kind = Expression::kFunction;
        node.function = function;
        out_->nodes_.push_back(node);
        return kOk;
    }

    const Layer& layer_;
    const char* name_;
    const std::string& text_;
    const bool by_order_;
    Expression* out_;
    size_t at_ = 0;
    const char* error_ = "";
};

// Whether as many parentheses close as open, none before it opens.
static bool is_balanced(const std::string& text) {
    int open = 0;
    for (const char c : text) {
        open += (c == '(') - (c == ')');
        if (open < 0) return false;
    }
    return open == 0;
}

int Expression::parse(const Layer& layer, const char* name, const std::string& text) {
    *this = Expression();
    if (text.empty()) return kOk;
    if (text.size() > kMaxLength)
        return layer.fail("%s: %zu characters, expected at most %d", name, text.size(), kMaxLength);
    text_ = text;
    ExpressionParser strict(layer, name, text, false, this);
    if (strict.list() == kOk) return kOk;
    *this = Expression();
    // "neg(1h,3)" is two values, neg(1h) and 3, to ncnn, which takes terms in their order.
    text_ = text;
    if (is_balanced(text) && ExpressionParser(layer, name, text, true, this).list() == kOk) {
        QUOLL_LOGW(
            "[%s %s] %s: \"%.80s\" has functions with too many or too few arguments in their "
            "parentheses: they take the terms that follow",
            layer.type.c_str(), layer.name.c_str(), name, text.c_str());
        return kOk;
    }
    *this = Expression();
    return strict.say_error();
}

bool Expression::uses_batch() const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](const Node& node) { return node.kind == kSize && node.axis == 'n'; });
}

int Expression::apply(const Layer& layer, int function, const Value* args, Value* result) const {
    const auto& info = kFunctions[function];
    const Value a = args[0], b = args[info.arguments - 1];
    const bool ints = a.is_int && b.is_int;
    if (info.kind == kBits && !ints)
        return layer.fail("\"%.80s\": %s takes ints only", text_.c_str(), info.name);
    if ((function == LSHIFT || function == RSHIFT) && (b.i < 0 || b.i > 30))
        return layer.fail("\"%.80s\": cannot shift by %lld", text_.c_str(), b.i);
    if (function == FLOORDIV && ints && b.i == 0)
        return layer.fail("\"%.80s\": division by zero", text_.c_str());
    if (ints && info.kind != kReal) {
        *result = Value{true, of_ints(function, a.i, b.i), 0.f};
    } else {
        const float f = info.arguments == 2 ? of_two(function, a.number(), b.number())
                                            : of_one(function, a.number());
        const bool whole = info.kind == kRound && is_int_value(f);
        *result = Value{whole, whole ? (long long)f : 0, f};
    }
    if (result->is_int ? is_int_value(result->i) : isfinite(result->f)) return kOk;
    return layer.fail("\"%.80s\": %s has no finite result that fits", text_.c_str(), info.name);
}

int Expression::evaluate(const Layer& layer, const std::vector<Shape>& inputs,
                         std::vector<int>* values) const {
    values->clear();
    std::vector<Value> stack;
    size_t begin = 0;
    for (const size_t end : ends_) {
        for (; begin < end; begin++) {
            const Node& node = nodes_[begin];
            Value value = node.number;
            if (node.kind == kSize) {
                if ((size_t)node.input >= inputs.size())
                    return layer.fail("\"%.80s\" refers to input %d, there are %zu", text_.c_str(),
                                      node.input, inputs.size());
                const Shape& s = inputs[node.input];
                const int size = node.axis == 'w'   ? s.w
                                 : node.axis == 'h' ? s.h
                                 : node.axis == 'd' ? s.d
                                 : node.axis == 'c' ? s.c
                                                    : s.n;
                value = Value{true, size, 0.f};
            } else if (node.kind == kFunction) {
                const size_t first = stack.size() - kFunctions[node.function].arguments;
                QUOLL_RETURN_IF_ERROR(apply(layer, node.function, &stack[first], &value));
                stack.resize(first);
            }
            stack.push_back(value);
        }
        const Value value = stack.back();
        stack.pop_back();
        if (!value.is_int && !is_int_value(value.f))
            return layer.fail("\"%.80s\": %g does not fit an int", text_.c_str(), value.f);
        values->push_back(value.is_int ? (int)value.i : (int)value.f);
    }
    return kOk;
}

// ---------------------------------------------------------------- for applications

namespace {
struct Nowhere : Layer {
    Nowhere() { type = "expression"; }
};
}  // namespace

int count_expression_blobs(const std::string& expr) {
    return catch_no_memory("count_expression_blobs", 0, [&] {
        Expression parsed;
        return parsed.parse(Nowhere(), "the text", expr) == kOk ? parsed.input_count() : 0;
    });
}

int eval_list_expression(const std::string& expr, const std::vector<Mat>& blobs,
                         std::vector<int>& outlist) {
    return catch_no_memory("eval_list_expression", [&] {
        const Nowhere layer;
        Expression parsed;
        QUOLL_RETURN_IF_ERROR(parsed.parse(layer, "the text", expr));
        std::vector<Shape> shapes;
        for (const Mat& m : blobs) shapes.push_back(m.logical_shape());
        outlist.clear();
        return parsed.evaluate(layer, shapes, &outlist);
    });
}

}  // namespace quoll
