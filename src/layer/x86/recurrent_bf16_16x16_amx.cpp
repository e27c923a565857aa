// The kernels of recurrent_units.h on AMX.
#include "layer/cpu/recurrent/recurrent_units.h"
#include "layer/x86/tile_unit.h"

namespace quoll {

namespace {

constexpr int kSumsOfTile = kUnitItems * kCellColumns;

void begin_cell_tiles(int rows) {
    TileConfig config = {};
    config.palette = 1;
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = (uint8_t)(i < 5 ? rows : 16);
    }
    tile_configure(config);
}

void end_cell_tiles() { tile_release(); }

// a b + c
QUOLL_TILE_INLINE __m512 fma(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
QUOLL_TILE_INLINE __m512 fma(__m512 a, __m512 b, float c) { return fma(a, b, _mm512_set1_ps(c)); }
QUOLL_TILE_INLINE __m512 fma(float a, __m512 b, float c) { return fma(_mm512_set1_ps(a), b, c); }

// Functions as quotients, by the formulas of simd/math_bf16.h and as exact: a product of two takes
// one reciprocal.

// 1 + e^-x, of which sigmoid(x) is the reciprocal.
QUOLL_TILE_INLINE __m512 sigmoid_divisor(__m512 x) {
    const __m512 y = _mm512_mul_ps(x, _mm512_set1_ps(-0x1.715476p+0f));
    const __m512 r = _mm512_reduce_ps(y, 9);  // y less the next whole number below
    __m512 p = fma(0x1.3f96a4p-4f, r, 0x1.cefc4cp-3f);
    p = fma(fma(p, r, 0x1.64444cp-1f), r, 0x1.fff632p-1f);
    return _mm512_add_ps(_mm512_scalef_ps(p, y), _mm512_set1_ps(1.f));
}
QUOLL_TILE_INLINE __m512 sigmoid(__m512 x) { return _mm512_rcp14_ps(sigmoid_divisor(x)); }

struct Quotient {
    __m512 dividend, divisor;
};
QUOLL_TILE_INLINE Quotient tanh_quotient(__m512 x) {
    const __m512 most = _mm512_set1_ps(4.8f), least = _mm512_set1_ps(-4.8f);
    const __m512 a = _mm512_min_ps(most, _mm512_max_ps(least, x)), z = _mm512_mul_ps(a, a);
    const __m512 p = fma(fma(0x1.69b658p-11f, z, 0x1.a600aep-4f), z, 0x1.fffa9ap-1f);
    return {_mm512_mul_ps(a, p), fma(fma(0x1.aa47b0p-7f, z, 0x1.be9118p-2f), z, 1.f)};
}
QUOLL_TILE_INLINE __m512 tanh(__m512 x) {
    const Quotient t = tanh_quotient(x);
    return _mm512_mul_ps(t.dividend, _mm512_rcp14_ps(t.divisor));
}
// tanh(x) sigmoid(y)
QUOLL_TILE_INLINE __m512 share_of_tanh(__m512 x, __m512 y) {
    const Quotient t = tanh_quotient(x);
    const __m512 divisor = _mm512_mul_ps(t.divisor, sigmoid_divisor(y));
    return _mm512_mul_ps(t.dividend, _mm512_rcp14_ps(divisor));
}

// 16 units of one item.
struct CellUnits {
    const RecurrentUnitStep& step;
    const float* sums;  // of the first gate
    int item;
    size_t first;

    QUOLL_TILE_INLINE __m512 input(int gate) const {
        return _mm512_loadu_ps(step.x[item] + step.gate[gate] + first);
    }
    QUOLL_TILE_INLINE __m512 state(int gate) const {
        const float* const from = sums + gate * kSumsOfTile + item * kCellColumns;
        const __m512 sum = _mm512_load_ps(from);
        if (step.rows == step.items) return sum;
        return _mm512_add_ps(sum, _mm512_load_ps(from + step.items * kCellColumns));
    }
    QUOLL_TILE_INLINE __m512 sum(int gate) const { return _mm512_add_ps(input(gate), state(gate)); }
};

struct LstmUnits {
    static constexpr int kGates = 4, kTiles = 1;
    QUOLL_TILE_INLINE static __m512 next(const CellUnits& u) {
        float* const cell = u.step.cell + u.item * u.step.n + u.first;
        const __m512 entering = share_of_tanh(u.sum(3), u.sum(0));
        const __m512 c = fma(sigmoid(u.sum(1)), _mm512_loadu_ps(cell), entering);
        _mm512_storeu_ps(cell, c);
        return share_of_tanh(c, u.sum(2));
    }
};

struct GruUnits {
    static constexpr int kGates = 3, kTiles = 1;
    QUOLL_TILE_INLINE static __m512 next(const CellUnits& u) {
        const __m512 bias = _mm512_loadu_ps(u.step.last_bias + u.first);
        const __m512 before = _mm512_loadu_ps(u.step.before[u.item] + u.first);
        const __m512 state = _mm512_add_ps(u.state(2), bias);
        const __m512 n = tanh(fma(sigmoid(u.sum(0)), state, u.input(2)));
        return fma(sigmoid(u.sum(1)), _mm512_sub_ps(before, n), n);
    }
};

struct RnnUnits {
    static constexpr int kGates = 1, kTiles = 4;
    QUOLL_TILE_INLINE static __m512 next(const CellUnits& u) { return tanh(u.sum(0)); }
};

// x rounded to bf16.
QUOLL_TILE_INLINE __m512 rounded(__m512 x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(to_bf16(x)), 16));
}
// What x has beyond `high`, rounded; infinities have nothing.
QUOLL_TILE_INLINE __m512 rounded_rest(__m512 x, __m512 high) {
    const __m512 rest = _mm512_sub_ps(x, high);
    return rounded(_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(rest, rest, _CMP_ORD_Q), rest));
}
// bf16 values of x and y in turn.
QUOLL_TILE_INLINE void store_pairs(uint16_t* to, __m512 x, __m512 y) {
    const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(x), 16);
    _mm512_store_si512(to, _mm512_or_si512(low, _mm512_castps_si512(y)));
}

// The states that the step begins with as operand of the products.
void pack_states(const RecurrentUnitStep& s) {
    for (int i = 0; i < s.items; i++) {
        if (!s.x[i]) continue;
        const float* const from = s.before[i];
        uint16_t* to = s.state + i * kCellK;
        for (size_t k = 0; k < s.n; k += kCellK, to += s.rows * kCellK) {
            const size_t second = k + kCellColumns;
            const __m512 x = _mm512_loadu_ps(from + k);
            const __m512 y = second < s.n ? _mm512_loadu_ps(from + second) : _mm512_setzero_ps();
            const __m512 high_x = rounded(x), high_y = rounded(y);
            store_pairs(to, high_x, high_y);
            if (s.rows > s.items)
                store_pairs(to + s.items * kCellK, rounded_rest(x, high_x),
                            rounded_rest(y, high_y));
        }
    }
}

// The new state of a group's units, from its sums, [tile][row][16].
template <class Cell>
QUOLL_TILE_INLINE void finish_item(const RecurrentUnitStep& s, const float* sums, size_t group,
                                   int item) {
    if (!s.x[item]) return;
    for (int tile = 0; tile < Cell::kTiles; tile++) {
        const size_t first = (group * Cell::kTiles + tile) * kCellColumns;
        if (first >= s.n) return;
        const CellUnits units = {s, sums + tile * kSumsOfTile, item, first};
        _mm512_storeu_ps(s.y[item] + first, Cell::next(units));
    }
}

template <int sum, int b_tile>
QUOLL_TILE_INLINE void add_tile(const char* b) {
    tile_load<b_tile>(b + sum * kCellTileBytes, 64);
    tile_dot_bf16<sum, 4, b_tile>();
}

// A group's sums. work: what is done between the steps of k.
template <int tiles, class Work>
QUOLL_TILE_INLINE void multiply_group(const RecurrentUnitStep& s, const char* b, float* sums,
                                      const Work& work) {
    const char* a = (const char*)s.state;
    tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
    for (size_t k = 0; k < s.n; k += kCellK) {
        tile_load<4>(a, 64);
        add_tile<0, 5>(b), add_tile<1, 6>(b), add_tile<2, 7>(b);
        if constexpr (tiles == 4) add_tile<3, 5>(b);
        a += s.rows * 64, b += tiles * kCellTileBytes;
        work();
    }
    tile_store<0>(sums, 64), tile_store<1>(sums + kSumsOfTile, 64);
    tile_store<2>(sums + 2 * kSumsOfTile, 64);
    if constexpr (tiles == 4) tile_store<3>(sums + 3 * kSumsOfTile, 64);
}

template <class Cell>
void cell_step(const RecurrentUnitStep& s) {
    constexpr int tiles = Cell::kGates * Cell::kTiles;
    alignas(64) float sums[2][tiles * kSumsOfTile];
    const size_t steps = (s.n + kCellK - 1) / kCellK;
    const int share = (int)((s.items + steps - 1) / steps);
    pack_states(s);
    for (size_t group = s.first_group; group < s.end_group; group++) {
        const float* const before = sums[(group + 1) % 2];
        int done = group == s.first_group ? s.items : 0;
        multiply_group<tiles>(
            s, (const char*)s.weights + group * steps * tiles * kCellTileBytes,
            sums[group % 2], [&]() __attribute__((always_inline)) {
                for (int i = 0; i < share && done < s.items; i++, done++)
                    finish_item<Cell>(s, before, group - 1, done);
            });
    }
    for (int i = 0; i < s.items; i++)
        finish_item<Cell>(s, sums[(s.end_group + 1) % 2], s.end_group - 1, i);
}

}  // namespace

extern const RecurrentUnitKernels QUOLL_TILE_NAME(recurrent_bf16_16x16);
const RecurrentUnitKernels QUOLL_TILE_NAME(recurrent_bf16_16x16) = {
    &begin_cell_tiles, &end_cell_tiles, &cell_step<LstmUnits>, &cell_step<GruUnits>,
    &cell_step<RnnUnits>};

}  // namespace quoll
