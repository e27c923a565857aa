// Int8Kernels::finish_s8 of vectors of SVE of 256 and 512 bits: whole vectors of columns of as many
// rows as make whole vectors of bytes, of blocks of four channels whose pixels are neighbours. What
// else there is goes the way of NEON.
#include "layer/cpu/int8/int8.h"

#if defined(QUOLL_BUILT_sve_assembly) && !defined(QUOLL_NO_INT8)
#include <math.h>

#include <algorithm>

#include "layer/arm/int8_finish_sve.h"
#include "layer/cpu/registry/kernel_rows.h"

namespace quoll {

extern const Int8Kernels int8_kernels_neon;

namespace {

enum { kRun = 4, kMostRuns = 4 };

struct Int8SveRows {
    const int32_t* sums;
    size_t row;  // from row to row
    const float *scale, *bias;
    int8_t* to[kMostRuns];  // of every four columns
    size_t bytes;           // of each of them, whole vectors
    float top_scale;
    int32_t low, high;
};
static_assert(offsetof(Int8SveRows, sums) == INT8_SVE_ROWS_SUMS, "");
static_assert(offsetof(Int8SveRows, scale) == INT8_SVE_ROWS_SCALE, "");
static_assert(offsetof(Int8SveRows, to) == INT8_SVE_ROWS_TO, "");
static_assert(offsetof(Int8SveRows, bytes) == INT8_SVE_ROWS_BYTES, "");
static_assert(offsetof(Int8SveRows, top_scale) == INT8_SVE_ROWS_TOP_SCALE, "");

extern "C" void quoll_int8_finish_s8_rows_sve(const Int8SveRows& rows);

// A limit of what is rounded is one of whole numbers.
int32_t whole_limit(float limit, float top_scale) {
    return (int32_t)roundf(std::min(127.f, std::max(-127.f, limit * top_scale)));
}

// The columns from `first` on, `used` of them, of `rows` rows from row `row` on.
void finish_rest(const Int8Store& t, size_t first, size_t used, int row, int rows) {
    if (used == 0 || rows == 0) return;
    Int8Store rest = t;
    rest.sums = (const int32_t*)t.sums + (size_t)row * t.width + first;
    rest.rows = rows, rest.used = used;
    rest.scale += first, rest.bias += first, rest.columns += first;
    rest.c = (int8_t*)t.c + row * t.c_row;
    int8_kernels_neon.finish_s8(rest);
}

}  // namespace

extern "C" void quoll_int8_finish_s8_sve(const Int8Store& t) {
    const size_t lanes = sve_lanes();
    const bool plain = !t.add && !t.affine && t.slope == 0.f && t.run == kRun && t.c_row == kRun &&
                       t.top_scale > 0.f && t.top_scale < INFINITY && t.low <= 0.f && t.high >= 0.f;
    if (!plain) return int8_kernels_neon.finish_s8(t);
    const size_t columns = t.used / lanes * lanes;
    const int rows = t.rows / (int)lanes * (int)lanes;
    for (size_t n = 0; n < columns && rows; n += lanes) {
        Int8SveRows tile = {(const int32_t*)t.sums + n,
                            t.width,
                            t.scale + n,
                            t.bias + n,
                            {},
                            (size_t)rows * kRun,
                            t.top_scale,
                            whole_limit(t.low, t.top_scale),
                            whole_limit(t.high, t.top_scale)};
        for (size_t i = 0; i < lanes / kRun; i++)
            tile.to[i] = (int8_t*)t.c + t.columns[n + i * kRun];
        quoll_int8_finish_s8_rows_sve(tile);
    }
    finish_rest(t, 0, columns, rows, t.rows - rows);
    finish_rest(t, columns, t.used - columns, 0, t.rows);
}

}  // namespace quoll
#endif
