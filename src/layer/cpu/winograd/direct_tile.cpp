// Tiles whose inputs are not all finite, by the definition: the transforms mix the inputs of a
// tile, and an infinity would make NaN of outputs whose windows do not have it.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "layer/cpu/winograd/winograd_plan.h"

namespace quoll {

namespace {

enum { kTaps = 9 };

// Points 0, a and infinity, which tiles of all sizes have, determine a window.
const int kKnownPoints[] = {0, 1, 5};
// At steps of 2 the weights of these ids are the taps themselves.
const int kKnownStridedPoints[] = {0, kWinogradOdd, 4};

// By Gauss and Jordan; false where there is no inverse.
bool invert(double m[kTaps][kTaps], double inverse[kTaps][kTaps]) {
    for (int i = 0; i < kTaps; i++)
        for (int j = 0; j < kTaps; j++) inverse[i][j] = i == j;
    for (int i = 0; i < kTaps; i++) {
        int pivot = i;
        for (int j = i + 1; j < kTaps; j++)
            if (fabs(m[j][i]) > fabs(m[pivot][i])) pivot = j;
        if (m[pivot][i] == 0) return false;
        std::swap_ranges(m[i], m[i] + kTaps, m[pivot]);
        std::swap_ranges(inverse[i], inverse[i] + kTaps, inverse[pivot]);
        const double scale = 1 / m[i][i];
        for (int k = 0; k < kTaps; k++) m[i][k] *= scale, inverse[i][k] *= scale;
        for (int j = 0; j < kTaps; j++) {
            const double f = m[j][i];
            if (j == i || f == 0) continue;
            for (int k = 0; k < kTaps; k++) {
                m[j][k] -= f * m[i][k];
                inverse[j][k] -= f * inverse[i][k];
            }
        }
    }
    return true;
}

}  // namespace

// From the known points of a window to its taps: `weights` transforms the windows of a single one.
struct WinogradPlan::Windows {
    bool strided;
    int points[kTaps];         // their numbers
    float taps[kTaps][kTaps];  // at steps of 1

    Windows(const WinogradKernels& kernels, bool sizes, int axis_points, int stride)
        : strided(stride == 2) {
        const int* const known = strided ? kKnownStridedPoints : kKnownPoints;
        for (int i = 0; i < kTaps; i++) points[i] = known[i / 3] * axis_points + known[i % 3];
        if (strided) return;
        float units[kTaps * kTaps] = {}, made[kWinogradTilePoints * kWinogradTilePoints * kTaps];
        for (int i = 0; i < kTaps; i++) units[i * kTaps + i] = 1.f;
        if (sizes)
            kernels.tile_weights(units, kTaps, axis_points, made, kTaps);
        else
            kernels.weights(units, kTaps, made, kTaps);
        double forward[kTaps][kTaps], back[kTaps][kTaps];
        for (int i = 0; i < kTaps; i++)
            for (int t = 0; t < kTaps; t++) forward[i][t] = made[points[i] * kTaps + t];
        invert(forward, back);
        for (int t = 0; t < kTaps; t++)
            for (int i = 0; i < kTaps; i++) taps[t][i] = (float)back[t][i];
    }

    // Of `lanes` windows, point i of which lies at packed + points[i] * step: taps, one behind the
    // other. At steps of 1 what is left of a tap that was zero is zero.
    void read(const float* packed, size_t step, size_t lanes, float* to) const {
        for (int t = 0; strided && t < kTaps; t++)
            memcpy(to + t * lanes, packed + points[t] * step, lanes * sizeof(float));
        if (strided) return;
        float largest[16] = {};
        memset(to, 0, kTaps * lanes * sizeof(float));
        for (int t = 0; t < kTaps; t++) {
            for (int i = 0; i < kTaps; i++)
                for (size_t l = 0; l < lanes; l++)
                    to[t * lanes + l] += taps[t][i] * packed[points[i] * step + l];
            for (size_t l = 0; l < lanes; l++)
                largest[l] = std::max(largest[l], fabsf(to[t * lanes + l]));
        }
        for (size_t i = 0; i < kTaps * lanes; i++)
            if (fabsf(to[i]) < 0x1p-20f * largest[i % lanes]) to[i] = 0.f;
    }
};

// One channel tells, and of it the points that are 0 or infinity along both axes, which tiles of
// all sizes have: between them their transforms read each input, and a sum that has an infinity or
// NaN as a term is not finite. All points of a tile would cost as much as a hundredth of the
// products.
bool WinogradPlan::is_finite(const Sums& sums, const Tile& t) const {
    if (is_strided()) return is_finite_strided(sums, t);
    const size_t last = 5, step = sums.step, row = (size_t)axis_points_ * step;
    const float* const points = sums.from;
    const float* const end = points + last * row;
    return isfinite(points[0]) && isfinite(points[last * step]) && isfinite(end[0]) &&
           isfinite(end[last * step]);
}

// The same, with the odd inputs of all outputs.
bool WinogradPlan::is_finite_strided(const Sums& sums, const Tile& t) {
    for (int y : kKnownStridedPoints)
        for (int x : kKnownStridedPoints) {
            const int rows =
                (y == kWinogradOdd ? t.there_h : 1) * (x == kWinogradOdd ? t.there_w : 1);
            const float* const set = sums.from + sums.rows[y * kWinogradIn + x] * sums.step;
            for (int i = 0; i < rows; i++)
                if (!isfinite(set[i * sums.step])) return false;
        }
    return true;
}

// What output i of a tile reads at this tap, of one channel; null: padding.
const float* WinogradPlan::input_of(const Tile& t, const float* in, int i, int tap) const {
    const ConvAxis &ax = shape_.x, &ay = shape_.y;
    const int out_y = t.y + i / t.there_w * ay.dilation, out_x = t.x + i % t.there_w * ax.dilation;
    const int y = out_y * ay.stride + tap / 3 * ay.dilation - ay.before;
    const int x = out_x * ax.stride + tap % 3 * ax.dilation - ax.before;
    if (y < 0 || y >= ay.in || x < 0 || x >= ax.in) return nullptr;
    return in + ((ptrdiff_t)y * ax.in + x) * kernels_.lanes;
}

// Adds what the inputs of channel k give; sums: [output][lane].
void WinogradPlan::add_window(const Tile& t, const float* in, const float* taps,
                              float* sums) const {
    const size_t lanes = kernels_.lanes;
    for (int i = 0; i < t.there_w * t.there_h; i++, sums += lanes)
        for (int tap = 0; tap < kTaps; tap++) {
            const float* const value = input_of(t, in, i, tap);
            if (!value) continue;
            for (size_t l = 0; l < lanes; l++) sums[l] += *value * taps[tap * lanes + l];
        }
}

// Whether the window of each output of a tile has NaN, which it then is, whatever the weights. So
// it is in most tiles behind the first layers of a network that was given NaN: computing them all
// by the definition would take thirty times as long as the network does.
bool WinogradPlan::is_all_nan(const Blobs& b, const Tile& t) const {
    static_assert((kWinogradTilePoints - 2) * (kWinogradTilePoints - 2) <= 64, "a bit for each");
    const size_t lanes = kernels_.lanes;
    const int outputs = t.there_w * t.there_h;
    uint64_t others = ~(uint64_t)0 >> (64 - outputs);
    for (size_t k = 0; k < inputs_ && others; k++) {
        const float* const slice = input_slice(b.in, t.z, k);
        if (!slice) continue;
        for (int i = 0; i < outputs; i++) {
            if (!(others >> i & 1)) continue;
            for (int tap = 0; tap < kTaps; tap++) {
                const float* const value = input_of(t, slice + k % lanes, i, tap);
                if (value && isnan(*value)) others &= ~((uint64_t)1 << i);
            }
        }
    }
    return !others;
}

void WinogradPlan::direct_tile(const Blobs& b, const Tile& t, const Part& part) const {
    const size_t lanes = kernels_.lanes, columns = panel_columns();
    const size_t point = gemm_packed_size(*kernels_.gemm, shape_.out_channels, inputs_);
    const bool all_nan = is_all_nan(b, t);
    const Windows windows(*kernels_.winograd, blocks_, axis_points_, x_.stride);
    for (size_t c = part.n0; c < part.n0 + part.columns; c += lanes) {
        float sums[kWinogradOut * kWinogradOut * 16] = {}, taps[kTaps * 16];
        const size_t n0 = c / columns * columns;
        const size_t width = gemm_panel_width(*kernels_.gemm, shape_.out_channels - n0);
        if (all_nan) {
            std::fill(sums, sums + t.there_w * t.there_h * lanes, NAN);
            finish_tile(b, t, c, sums);
            continue;
        }
        const float* const panel = b.weights + n0 * inputs_ + (c - n0);
        for (size_t k = 0; k < inputs_; k++) {
            const float* const slice = input_slice(b.in, t.z, k);
            if (!slice) continue;
            windows.read(panel + k * width, point, lanes, taps);
            add_window(t, slice + k % lanes, taps, sums);
        }
        finish_tile(b, t, c, sums);
    }
}

// Clamped, NaN stays.
void WinogradPlan::finish_tile(const Blobs& b, const Tile& t, size_t c, float* sums) const {
    const FusedActivation& f = b.activation;
    const size_t lanes = kernels_.lanes;
    for (int i = 0; i < t.there_w * t.there_h; i++, sums += lanes) {
        const ptrdiff_t y = t.y + i / t.there_w * shape_.y.dilation;
        const ptrdiff_t x = t.x + i % t.there_w * shape_.x.dilation;
        const ptrdiff_t at = (((ptrdiff_t)t.z * shape_.y.out + y) * shape_.x.out + x) * lanes;
        for (size_t l = 0; l < lanes; l++) {
            sums[l] += b.bias[c + l];
            if (b.residual) sums[l] += b.residual[c / lanes * b.residual_step + at + l];
            // One limit after the other, as elsewhere: the lower one may be above the upper one.
            if (sums[l] < f.low) sums[l] = f.low;
            if (sums[l] > f.high) sums[l] = f.high;
        }
        f.finish(sums, lanes);
        memcpy(b.out + c / lanes * shape_.out_step + at, sums, lanes * sizeof(float));
    }
}

}  // namespace quoll
