#include "layer/elementwise/tensorbinary.h"

#include <math.h>

#include <algorithm>
#include <type_traits>

#include "layer/common/integer.h"

namespace quoll {

void TensorBinary::params(TensorBinary& s, ParamVisitor& v) {
    v(0, "op_type", s.op_type, 0,
      "0 +, 1 -, 2 *, 3 /, 4 mod (sign of b), 5 fmod (sign of a), 6 pow, 7 max, 8 min, 9 ==, "
      "10 <, 11 >, 12 <=, 13 >=, 14 and, 15 or, 16 xor, bitwise: 17 and, 18 or, 19 xor, 20 <<, "
      "21 >>",
      between(0, kOperationCount - 1));
}

static bool is_comparison(int op) {
    return op >= TensorBinary::EQUAL && op <= TensorBinary::GREATER_EQUAL;
}
static bool is_logical(int op) { return op >= TensorBinary::AND && op <= TensorBinary::XOR; }
static bool is_bitwise(int op) { return op >= TensorBinary::BIT_AND; }

int TensorBinary::shape(const TensorBinary& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 2, 2));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "second input", in[1].dtype, in[0].dtype));
    if (is_logical(s.op_type))
        QUOLL_RETURN_IF_ERROR(expect_dtype(s, "inputs", in[0].dtype, DType::u8));
    if (is_bitwise(s.op_type) && in[0].dtype == DType::f32)
        return s.fail("bits of f32: expected an integer type");
    out.resize(1);
    QUOLL_RETURN_IF_ERROR(broadcast_shapes(s, in, &out[0]));
    if (is_comparison(s.op_type)) out[0].dtype = DType::u8;
    return kOk;
}

namespace {

struct Operands {
    const Mat &a, &b;
    Mat& out;
};

// out = f(a, b) for values of type T, results of type R.
template <class T, class R, class F>
void apply(const Operands& o, F f) {
    const Steps steps[] = {spread_steps(o.a), spread_steps(o.b), steps_of(o.out)};
    const Axes4 over = axes_of(o.out);
    const ptrdiff_t sa = steps[0].step[3], sb = steps[1].step[3];
    for_each_row(over.size, steps, [&](const ptrdiff_t* at) {
        const T* a = (const T*)o.a.data + at[0];
        const T* b = (const T*)o.b.data + at[1];
        R* out = (R*)o.out.data + at[2];
        const int count = over.size[3];
        if (sa == 1 && sb == 1) {
            for (int i = 0; i < count; i++) out[i] = f(a[i], b[i]);
        } else if (sa == 1 && sb == 0 && count > 0) {
            const T y = b[0];
            for (int i = 0; i < count; i++) out[i] = f(a[i], y);
        } else if (sa == 0 && sb == 1 && count > 0) {
            const T x = a[0];
            for (int i = 0; i < count; i++) out[i] = f(x, b[i]);
        } else {
            for (int i = 0; i < count; i++) out[i] = f(a[i * sa], b[i * sb]);
        }
    });
}

float power(float a, float b) { return powf(a, b); }
float quotient(float a, float b) { return a / b; }
float modulo(float a, float b) { return fmodf(a, b); }
float floor_modulo(float a, float b) {
    const float m = fmodf(a, b);
    return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
template <class T>
T power(T a, T b) {
    return (T)int_power(a, b);
}
template <class T>
T quotient(T a, T b) {
    return (T)int_quotient(a, b);
}
template <class T>
T modulo(T a, T b) {
    return (T)int_modulo(a, b);
}
template <class T>
T floor_modulo(T a, T b) {
    return (T)int_floor_modulo(a, b);
}
// NaN wins over all numbers, as in NumPy.
template <class T>
T larger(T a, T b) {
    return a > b || a != a ? a : b;
}
template <class T>
T smaller(T a, T b) {
    return a < b || a != a ? a : b;
}

template <class T>
void arithmetic(int op, const Operands& o) {
    switch (op) {
        case TensorBinary::ADD:
            return apply<T, T>(o, [](T a, T b) { return wrapping_add(a, b); });
        case TensorBinary::SUB:
            return apply<T, T>(o, [](T a, T b) { return wrapping_sub(a, b); });
        case TensorBinary::MUL:
            return apply<T, T>(o, [](T a, T b) { return wrapping_mul(a, b); });
        case TensorBinary::DIV:
            return apply<T, T>(o, [](T a, T b) { return quotient(a, b); });
        case TensorBinary::MOD:
            return apply<T, T>(o, [](T a, T b) { return floor_modulo(a, b); });
        case TensorBinary::FMOD:
            return apply<T, T>(o, [](T a, T b) { return modulo(a, b); });
        case TensorBinary::POW:
            return apply<T, T>(o, [](T a, T b) { return power(a, b); });
        case TensorBinary::MAX:
            return apply<T, T>(o, [](T a, T b) { return larger(a, b); });
        case TensorBinary::MIN:
            return apply<T, T>(o, [](T a, T b) { return smaller(a, b); });
    }
}

template <class T>
void compare(int op, const Operands& o) {
    switch (op) {
        case TensorBinary::EQUAL:
            return apply<T, uint8_t>(o, [](T a, T b) { return a == b; });
        case TensorBinary::LESS:
            return apply<T, uint8_t>(o, [](T a, T b) { return a < b; });
        case TensorBinary::GREATER:
            return apply<T, uint8_t>(o, [](T a, T b) { return a > b; });
        case TensorBinary::LESS_EQUAL:
            return apply<T, uint8_t>(o, [](T a, T b) { return a <= b; });
        case TensorBinary::GREATER_EQUAL:
            return apply<T, uint8_t>(o, [](T a, T b) { return a >= b; });
    }
}

void logical(int op, const Operands& o) {
    using T = uint8_t;
    switch (op) {
        case TensorBinary::AND:
            return apply<T, T>(o, [](T a, T b) { return a && b; });
        case TensorBinary::OR:
            return apply<T, T>(o, [](T a, T b) { return a || b; });
        case TensorBinary::XOR:
            return apply<T, T>(o, [](T a, T b) { return !a != !b; });
    }
}

template <class U>
void bitwise(int op, const Operands& o) {
    const U width = sizeof(U) * 8;
    switch (op) {
        case TensorBinary::BIT_AND:
            return apply<U, U>(o, [](U a, U b) { return (U)(a & b); });
        case TensorBinary::BIT_OR:
            return apply<U, U>(o, [](U a, U b) { return (U)(a | b); });
        case TensorBinary::BIT_XOR:
            return apply<U, U>(o, [](U a, U b) { return (U)(a ^ b); });
        case TensorBinary::SHIFT_LEFT:
            return apply<U, U>(o, [=](U a, U b) { return b < width ? (U)(a << b) : U(0); });
        case TensorBinary::SHIFT_RIGHT:
            return apply<U, U>(o, [=](U a, U b) { return b < width ? (U)(a >> b) : U(0); });
    }
}

}  // namespace

int TensorBinary::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                          const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Operands o = {bottoms[0], bottoms[1], tops[0]};
    if (is_logical(op_type)) {
        logical(op_type, o);
    } else if (is_bitwise(op_type)) {
        with_word(o.a.elemsize, [&](auto word) { bitwise<decltype(word)>(op_type, o); });
    } else {
        with_number(o.a.dtype, [&](auto number) {
            using T = decltype(number);
            if (is_comparison(op_type))
                compare<T>(op_type, o);
            else
                arithmetic<T>(op_type, o);
        });
    }
    return kOk;
}

int Where::shape(const Where& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 3, 3));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "condition", in[0].dtype, DType::u8));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "third input", in[2].dtype, in[1].dtype));
    out.resize(1);
    QUOLL_RETURN_IF_ERROR(broadcast_shapes(s, in, &out[0]));
    out[0].dtype = in[1].dtype;
    return kOk;
}

// out[i] = c[i] ? x[i] : y[i], with steps of x and y that are 0 or 1. By masks, since a branch
// would be mispredicted half of the time.
template <int sx, int sy, class T>
static void choose(const uint8_t* __restrict c, const T* __restrict x, const T* __restrict y,
                   T* __restrict out, int count) {
    for (int i = 0; i < count; i++) {
        const T mask = (T)(0 - (T)(c[i] != 0));
        out[i] = (T)((x[i * sx] & mask) | (y[i * sy] & (T)~mask));
    }
}

int Where::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                   const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Steps steps[] = {spread_steps(bottoms[0]), spread_steps(bottoms[1]),
                           spread_steps(bottoms[2]), steps_of(tops[0])};
    const ptrdiff_t sc = steps[0].step[3], sx = steps[1].step[3], sy = steps[2].step[3];
    const Axes4 over = axes_of(tops[0]);
    with_word(tops[0].elemsize, [&](auto word) {
        using T = decltype(word);
        for_each_row(over.size, steps, [&](const ptrdiff_t* at) {
            const uint8_t* c = (const uint8_t*)bottoms[0].data + at[0];
            const T* x = (const T*)bottoms[1].data + at[1];
            const T* y = (const T*)bottoms[2].data + at[2];
            T* out = (T*)tops[0].data + at[3];
            const int count = over.size[3];
            if (sc == 1 && sx == 1 && sy == 1) return choose<1, 1>(c, x, y, out, count);
            if (sc == 1 && sx == 1 && sy == 0) return choose<1, 0>(c, x, y, out, count);
            if (sc == 1 && sx == 0 && sy == 1) return choose<0, 1>(c, x, y, out, count);
            for (int i = 0; i < count; i++) out[i] = c[i * sc] ? x[i * sx] : y[i * sy];
        });
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(TensorBinary)
QUOLL_DEFINE_LAYER(Where)

}  // namespace quoll
