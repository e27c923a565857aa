// Maxima of 16-bit floats, found as integers.
#pragma once

#include "layer/cpu/pool/pool.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

// Sign and magnitude become two's complement and back.
template <class K>
QUOLL_INLINE K flip_negative(K x) {
    return x ^ (x.template shift_right<15>() & K::set(0x7fff));
}

// The negative NaN, which come out lowest, wrap around to the top.
template <class K>
QUOLL_INLINE K key_of(const uint16_t* p, K nans) {
    return flip_negative(K::load((const int16_t*)p)) - nans;
}
template <class K>
QUOLL_INLINE void store_key(K key, K nans, uint16_t* p) {
    flip_negative(key + nans).store((int16_t*)p);
}

template <size_t N>
QUOLL_INLINE void key_rows_at(const uint16_t* in, size_t row_step, int rows, int nans,
                              int16_t* out) {
    using K = s::vec<int16_t, N>;
    const K n = K::set((int16_t)nans);
    K most = key_of(in, n);
    for (int y = 1; y < rows; y++) most = max(most, key_of(in + y * row_step, n));
    most.store(out);
}

void pool_key_rows(const uint16_t* in, size_t row_step, int rows, int nans, int16_t* out,
                   size_t n) {
    constexpr size_t L = s::native_lanes<int16_t>();
    size_t x = 0;
    for (; x + L <= n; x += L) key_rows_at<L>(in + x, row_step, rows, nans, out + x);
    if (x < n && n >= L)  // some of them again
        return key_rows_at<L>(in + n - L, row_step, rows, nans, out + n - L);
    for (; x < n; x++) key_rows_at<1>(in + x, row_step, rows, nans, out + x);
}

// N values of a window, whose elements are `step` values apart.
template <size_t N>
QUOLL_INLINE void key_window(const int16_t* in, int columns, size_t step, int nans, uint16_t* out) {
    using K = s::vec<int16_t, N>;
    K most = K::load(in);
    for (int x = 1; x < columns; x++) most = max(most, K::load(in + x * step));
    store_key(most, K::set((int16_t)nans), out);
}

// Windows one element apart are one run of values.
QUOLL_INLINE void key_windows_dense(const PoolKeyWindows& w) {
    constexpr size_t L = s::native_lanes<int16_t>();
    const size_t n = (size_t)w.count * w.pack, step = w.pack;
    size_t i = 0;
    for (; i + L <= n; i += L) key_window<L>(w.in + i, w.columns, step, w.nans, w.out + i);
    if (i < n && n >= L) return key_window<L>(w.in + n - L, w.columns, step, w.nans, w.out + n - L);
    for (; i < n; i++) key_window<1>(w.in + i, w.columns, step, w.nans, w.out + i);
}

template <size_t N>
QUOLL_INLINE void key_windows(const PoolKeyWindows& w) {
    const size_t stride = (size_t)w.stride * w.pack;
    for (int i = 0; i < w.count; i++)
        for (size_t j = 0; j < (size_t)w.pack; j += N)
            key_window<N>(w.in + i * stride + j, w.columns, w.pack, w.nans,
                          w.out + (size_t)i * w.pack + j);
}

void pool_key_across(const PoolKeyWindows& w) {
    if (w.stride == 1 && w.count > 1) return key_windows_dense(w);
    if constexpr (s::native_lanes<int16_t>() >= 16) {
        if (w.pack % 16 == 0) return key_windows<16>(w);
    }
    if constexpr (s::native_lanes<int16_t>() >= 8) {
        if (w.pack % 8 == 0) return key_windows<8>(w);
        if (w.pack % 4 == 0) return key_windows<4>(w);
    }
    key_windows<1>(w);
}

}  // namespace
}  // namespace quoll
