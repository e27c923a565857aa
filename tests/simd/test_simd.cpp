// The vector facade on every ISA: each name against what C++ scalars give.
#include <float.h>
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernel/guarded.h"
#include "kernel/ulp.h"
#include "quoll/mat.h"
#include "runtime/cpu_features.h"
#include "wrappers.h"

namespace quoll {

#define QUOLL_ISA(isa, lanes) extern const SimdWrappers simd_wrappers_##isa;
#include "isa_list.inc"
#undef QUOLL_ISA

namespace {

struct Level {
    Isa isa;
    const SimdWrappers* wrappers;
};
std::vector<Level> levels() {
    const Level all[] = {
#define QUOLL_ISA(isa, lanes) {Isa::isa, &simd_wrappers_##isa},
#include "isa_list.inc"
#undef QUOLL_ISA
    };
    std::vector<Level> usable;
    for (const Level& level : all)
        if (level.isa <= best_isa(host_cpu_features())) usable.push_back(level);
    return usable;
}

const size_t kMaxLanes = 32;
const float kSpecial[] = {0.f,     -0.f,     1.f,     -1.f,     .5f,       -.5f,
                          1.5f,    2.5f,     -2.5f,   INFINITY, -INFINITY, NAN,
                          FLT_MAX, -FLT_MAX, FLT_MIN, 1e-41f,   -1e-41f,   3.f,
                          -3.f,    1e10f,    -1e10f,  8192.f,   0.1f,      16777216.f};

struct Reduced {
    double sum, max, min;
};

// Arguments of one call and what surrounds a lane in it.
struct Lane {
    float a, b, c, swapped;
    Reduced reduced;
    size_t lane;
    bool fused;
};

float limited(float x) { return std::max(-1e9f, std::min(1e9f, x)); }

typedef double (*Reference)(const Lane&);
#define QUOLL_SIMD_OP(name, expression, reference, ulp)                                    \
    double name##_reference(const Lane& l) {                                               \
        [[maybe_unused]] const float a = l.a, b = l.b, c = l.c, swapped = l.swapped;       \
        [[maybe_unused]] const Reduced& reduced = l.reduced;                               \
        [[maybe_unused]] const double lane = (double)l.lane;                               \
        [[maybe_unused]] const auto multiply_add = [&](float x, float y, float z) {        \
            return l.fused ? ::fma((double)x, (double)y, (double)z) : (double)(x * y) + z; \
        };                                                                                 \
        return reference;                                                                  \
    }
#include "wrappers.inc"
#undef QUOLL_SIMD_OP

struct Op {
    const char* name;
    SimdOp SimdWidth::*op;
    Reference reference;
    double ulp;
};
const Op kOps[] = {
#define QUOLL_SIMD_OP(name, expression, reference, ulp) \
    {#name, &SimdWidth::name, name##_reference, ulp},
#include "wrappers.inc"
#undef QUOLL_SIMD_OP
};

void check_call(const Level& level, const Op& op, const SimdWidth& width, const float* a,
                const float* b, const float* c) {
    const size_t n = width.lanes;
    float out[kMaxLanes];
    (width.*op.op)(a, b, c, out);
    Reduced reduced = {0, a[0], a[0]};
    double magnitude = 0;
    bool nan = false;
    for (size_t i = 0; i < n; i++) {
        reduced.sum += a[i];
        reduced.max = std::max(reduced.max, (double)a[i]);
        reduced.min = std::min(reduced.min, (double)a[i]);
        magnitude += fabs((double)a[i]);
        nan = nan || isnan(a[i]);
    }
    const bool reduces = strncmp(op.name, "reduce", 6) == 0;
    if (reduces && (nan || magnitude > 1e30)) return;  // left open
    const bool converts = strncmp(op.name, "int_", 4) == 0;
    for (size_t i = 0; i < n; i++) {
        // The contract of min and max leaves a NaN in a alone open; NaN has no integer.
        const bool min_max = strcmp(op.name, "min") == 0 || strcmp(op.name, "max") == 0;
        if (isnan(a[i]) && (min_max || converts)) continue;
        const Lane lane = {a[i], b[i], c[i], a[(i + n / 2) % n], reduced, i, level.wrappers->fused};
        const double exact = op.reference(lane);
#if defined(__arm__)  // whose vectors take denormal numbers for zero
        const auto denormal = [](double x) { return x != 0 && fabs(x) < FLT_MIN; };
        if (denormal(a[i]) || denormal(b[i]) || denormal(c[i]) || denormal(exact)) continue;
#endif
        // Cancellation in a sum: errors of the size of its terms.
        double slack = reduces ? 0x1p-22 * (double)n * magnitude : 0;
#if defined(__arm__)  // a product that is rounded by itself may be denormal
        if (level.isa == Isa::neon && !level.wrappers->fused) slack += FLT_MIN;
#endif
        ASSERT_LE(ulp_error(out[i], exact), op.ulp + (slack ? slack / ulp_of(exact) : 0))
            << isa_name(level.isa) << " " << op.name << " lanes " << n << " lane " << i << ": "
            << a[i] << ", " << b[i] << ", " << c[i] << " gave " << out[i] << ", exact " << exact;
    }
}

TEST(Simd, arithmetic) {
    std::mt19937 rng(3);
    std::uniform_real_distribution<float> uniform(-100, 100);
    for (const Level& level : levels())
        for (const Op& op : kOps)
            for (const SimdWidth& width : level.wrappers->widths)
                for (int call = 0; call < 300; call++) {
                    float v[3][kMaxLanes];
                    for (auto& row : v)
                        for (float& x : row) {
                            x = uniform(rng);
                            if (call % 3 == 1) x = ldexpf(x, -(int)(rng() % 20));
                            if (call % 3 == 2 && rng() % 2)
                                x = kSpecial[rng() % (sizeof(kSpecial) / sizeof(float))];
                        }
                    check_call(level, op, width, v[0], v[1], v[2]);
                    if (HasFatalFailure()) return;
                }
}

TEST(Simd, parts_touch_nothing_else) {
    for (const Level& level : levels())
        for (const SimdWidth& width : level.wrappers->widths)
            for (size_t n = 0; n <= width.lanes + 2; n++)
                for (bool at_end : {true, false}) {
                    const size_t used = std::min(n, width.lanes);
                    Guarded<float> part(used, at_end);
                    float all[kMaxLanes], out[kMaxLanes];
                    for (size_t i = 0; i < used; i++) part[i] = (float)i + 1;
                    width.load_n(part.data(), n, out);
                    for (size_t i = 0; i < width.lanes; i++)
                        ASSERT_EQ(out[i], i < used ? (float)i + 1 : 0.f) << isa_name(level.isa);
                    for (size_t i = 0; i < width.lanes; i++) all[i] = -(float)i;
                    width.store_n(all, n, part.data());
                    for (size_t i = 0; i < used; i++)
                        ASSERT_EQ(part[i], -(float)i) << isa_name(level.isa);
                }
}

TEST(Simd, integers) {
    std::mt19937 rng(4);
    for (const Level& level : levels())
        for (const SimdWidth& width : level.wrappers->widths)
            for (int call = 0; call < 200; call++) {
                int32_t a[kMaxLanes], b[kMaxLanes], out[kMaxLanes * kSimdIntOps];
                for (int32_t& x : a) x = (int32_t)rng();
                for (int32_t& x : b) x = (int32_t)rng() >> (rng() % 32);
                width.int_ops(a, b, out);
                for (size_t i = 0; i < width.lanes; i++) {
                    const uint32_t x = (uint32_t)a[i], y = (uint32_t)b[i];
                    const int32_t expected[kSimdIntOps] = {
                        (int32_t)(x + y),    (int32_t)(x - y), (int32_t)(x * y),
                        (int32_t)(x & y),    (int32_t)(x | y), (int32_t)(x ^ y),
                        (int32_t)(x << 3),   a[i] >> 3,        std::min(a[i], b[i]),
                        std::max(a[i], b[i])};
                    for (size_t k = 0; k < kSimdIntOps; k++)
                        ASSERT_EQ(out[k * width.lanes + i], expected[k])
                            << isa_name(level.isa) << " operation " << k << " of " << a[i] << ", "
                            << b[i];
                }
            }
}

TEST(Simd, transposes) {
    for (const Level& level : levels())
        for (size_t w = 0; w < 5; w++) {
            const size_t n = (size_t)1 << w;
            float in[256], out[256];
            for (size_t i = 0; i < n * n; i++) in[i] = (float)i;
            level.wrappers->transpose[w](in, out);
            for (size_t i = 0; i < n * n; i++)
                ASSERT_EQ(out[i], in[i % n * n + i / n]) << isa_name(level.isa) << " " << n;
        }
}

// Every half, and floats around every half.
TEST(Simd, halves) {
    for (const Level& level : levels())
        for (const SimdWidth& width : level.wrappers->widths)
            for (uint32_t first = 0; first < 65536; first += (uint32_t)width.lanes) {
                uint16_t bits[kMaxLanes], back[kMaxLanes];
                float values[kMaxLanes];
                for (size_t i = 0; i < width.lanes; i++) bits[i] = (uint16_t)(first + i);
                width.load_f16(bits, values);
                for (size_t i = 0; i < width.lanes; i++) {
                    const float expected = float16_to_float32(bits[i]);
                    ASSERT_TRUE(values[i] == expected || (isnan(values[i]) && isnan(expected)))
                        << isa_name(level.isa) << " " << bits[i];
                }
                // Halfway to the neighbour, and to either side of that.
                for (int nudge = -1; nudge <= 1; nudge++) {
                    for (size_t i = 0; i < width.lanes; i++) {
                        uint32_t u;
                        memcpy(&u, &values[i], 4);
                        if (isfinite(values[i])) u += 0x1000u + (uint32_t)nudge;
                        memcpy(&values[i], &u, 4);
                    }
                    width.store_f16(values, back);
                    for (size_t i = 0; i < width.lanes; i++) {
                        const uint16_t expected = float32_to_float16(values[i]);
                        const bool nan = isnan(values[i]) && (back[i] & 0x7fff) > 0x7c00;
                        ASSERT_TRUE(nan || back[i] == expected)
                            << isa_name(level.isa) << " " << values[i] << ": " << back[i] << " not "
                            << expected;
                        values[i] = float16_to_float32(bits[i]);
                    }
                }
            }
}

TEST(Simd, bfloat16) {
    std::mt19937 rng(5);
    for (const Level& level : levels())
        for (const SimdWidth& width : level.wrappers->widths)
            for (int call = 0; call < 5000; call++) {
                float values[kMaxLanes], back[kMaxLanes];
                uint16_t bits[kMaxLanes];
                for (float& x : values) {
                    uint32_t u = (uint32_t)rng();
                    if (rng() % 4 == 0) u = (u & 0xffff0000u) | 0x8000u;  // halfway
                    memcpy(&x, &u, 4);
                }
                width.store_bf16(values, bits);
                width.load_bf16(bits, back);
                for (size_t i = 0; i < width.lanes; i++) {
                    if (isnan(values[i])) {
                        ASSERT_TRUE(isnan(back[i])) << isa_name(level.isa);
                        continue;
                    }
                    ASSERT_EQ(bits[i], float32_to_bfloat16(values[i])) << isa_name(level.isa);
                    ASSERT_EQ(back[i], bfloat16_to_float32(bits[i])) << isa_name(level.isa);
                }
            }
}

TEST(Simd, bytes) {
    std::mt19937 rng(6);
    for (const Level& level : levels())
        for (const SimdWidth& width : level.wrappers->widths)
            for (int call = 0; call < 500; call++) {
                int32_t values[kMaxLanes], back[kMaxLanes];
                int8_t s[kMaxLanes];
                uint8_t u[kMaxLanes];
                for (int32_t& x : values) x = (int32_t)rng() >> (rng() % 32);
                width.store_s8(values, s);
                width.store_u8(values, u);
                width.load_s8(s, back);
                for (size_t i = 0; i < width.lanes; i++)
                    ASSERT_EQ(back[i], std::min(127, std::max(-128, values[i])))
                        << isa_name(level.isa);
                width.load_u8(u, back);
                for (size_t i = 0; i < width.lanes; i++)
                    ASSERT_EQ(back[i], std::min(255, std::max(0, values[i])))
                        << isa_name(level.isa);
            }
}

}  // namespace
}  // namespace quoll
