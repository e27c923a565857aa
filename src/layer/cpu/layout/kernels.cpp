// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/layout/layout.h"
#include "simd/bytes.h"
#include "simd/convert.h"
#include "simd/vec.h"

namespace quoll {

namespace {

namespace s = simd;

// Picks first, first + 1, ... that lie behind one another and fill a vector of N bytes.
template <size_t N>
size_t pick_vectors(const PickBytes& p, size_t first) {
    using V = s::vec<uint8_t, N>;
    const s::PickOfTwo<N> pick(p.from_a, p.from_b);
    // Copies, which no store of bytes can change.
    constexpr size_t kPicks = N / kPickBytes;
    const size_t step = p.step * kPicks, out_step = p.out_step * kPicks;
    const uint8_t *a = p.a + first * p.step, *b = p.b + first * p.step;
    uint8_t* out = p.out + first * p.out_step;
    size_t left = (p.n - first) / kPicks;
    first += left * kPicks;
    for (; left > 1; left -= 2, a += 2 * step, b += 2 * step, out += 2 * out_step) {
        pick(V::load(a), V::load(b)).store(out);
        pick(V::load(a + step), V::load(b + step)).store(out + out_step);
    }
    if (left) pick(V::load(a), V::load(b)).store(out);
    return first;
}

void pick_bytes(const PickBytes& p) {
    size_t i = 0;
    constexpr size_t kBytes = s::kLanes * 4;
    if constexpr (kBytes > kPickBytes) {
        if (p.step == kPickBytes && p.out_step == kPickBytes) i = pick_vectors<kBytes>(p, 0);
    }
    pick_vectors<kPickBytes>(p, i);
}

// `some` rows of the result and `count` of their columns, both at most the lanes of a vector.
QUOLL_INLINE void transpose_square(const TransposeValues& t, size_t i, size_t k, size_t some,
                                   size_t count) {
    using V = s::vecf<s::kLanes>;
    V r[s::kLanes];
    const float* from = t.src + k * t.src_step + i;
    float* to = t.dst + i * t.dst_step + k;
    if (some == s::kLanes && count == s::kLanes) {
        for (size_t n = 0; n < s::kLanes; n++) r[n] = V::load(from + n * t.src_step);
        s::transpose(r);
        for (size_t n = 0; n < s::kLanes; n++) r[n].store(to + n * t.dst_step);
        return;
    }
    for (size_t n = 0; n < s::kLanes; n++)
        r[n] = n < count ? V::load_n(from + n * t.src_step, some) : V::zero();
    s::transpose(r);
    for (size_t n = 0; n < some; n++) r[n].store_n(to + n * t.dst_step, count);
}

void transpose_values(const TransposeValues& t) {
    for (size_t i = 0; i < t.rows; i += s::kLanes)
        for (size_t k = 0; k < t.columns; k += s::kLanes)
            transpose_square(t, i, k, s::min_size(s::kLanes, t.rows - i),
                             s::min_size(s::kLanes, t.columns - k));
}

#if !defined(QUOLL_NO_HALF_STORAGE)
// A square of words, each of the halves of two neighbouring columns of the result.
QUOLL_INLINE void transpose_words(const TransposeHalves& t, size_t i, size_t k) {
    using V = s::vecf<s::kLanes>;
    V r[s::kLanes];
    const uint16_t* from = t.src + k * t.src_step + i;
    for (size_t n = 0; n < s::kLanes; n++, from += 2 * t.src_step)
        r[n] = s::bit_cast<float>(
            s::load_small<uint16_t, s::kLanes>(from) +
            s::load_small<uint16_t, s::kLanes>(from + t.src_step).template shift_left<16>());
    s::transpose(r);
    for (size_t n = 0; n < s::kLanes; n++) r[n].store((float*)(t.dst + (i + n) * t.dst_step + k));
}

// Squares that would go beyond the end overlap those before them.
void transpose_halves(const TransposeHalves& t) {
    constexpr size_t kRows = s::kLanes, kColumns = 2 * s::kLanes;
    if (t.rows >= kRows && t.columns >= kColumns) {
        for (size_t i = 0; i < t.rows; i += kRows)
            for (size_t k = 0; k < t.columns; k += kColumns)
                transpose_words(t, s::min_size(i, t.rows - kRows),
                                s::min_size(k, t.columns - kColumns));
        return;
    }
    for (size_t i = 0; i < t.rows; i++)
        for (size_t k = 0; k < t.columns; k++)
            t.dst[i * t.dst_step + k] = t.src[k * t.src_step + i];
}
#else
constexpr void (*transpose_halves)(const TransposeHalves& t) = nullptr;
#endif

}  // namespace

extern const LayoutKernels QUOLL_ISA_TABLE(layout_kernels);
const LayoutKernels QUOLL_ISA_TABLE(layout_kernels) = {&pick_bytes, &transpose_values,
                                                       transpose_halves};

}  // namespace quoll
