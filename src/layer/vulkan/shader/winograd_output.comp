// The last step of a convolution by Winograd's algorithm: an invocation makes four channels of a
// tile of outputs of the products' sums, [tile][point][channels]. What is infinite or NaN in a tile
// is so in all of its outputs, and points of f16 may overflow where outputs do not: then the tile's
// outputs are computed from their windows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "index.glsl"
#include "pairs.glsl"
#include "math.glsl"
#include "activation.glsl"
#include "conv.glsl"
#include "winograd.glsl"

// weight: [outputs][depth, a multiple of 64], as conv_matrix.comp takes it, or [depth][outputs].
layout(constant_id = 4) const bool kOutputRows = false;
READS4(5, Sums, sums);

bool is_finite4(vec4 v) {
    return all(lessThan(floatBitsToUint(v) & 0x7fffffffu, uvec4(0x7f800000u)));
}

// What the four inputs at `k` add to four outputs.
vec4 product(vec4 v, int k, int c, int vectors) {
    vec4 sum = vec4(0.0);
    [[unroll]] for (int i = 0; i < 4; i++) {
        if (!kOutputRows) {
            sum += v[i] * vec4(weight[(4 * k + i) * vectors + c]);
            continue;
        }
        const int each = (9 * x_c * 4 + 63) / 64 * 16;
        const vec4 w = 4 * c + i < channels ? vec4(weight[(4 * c + i) * each + k]) : vec4(0.0);
        sum[i] = v.x * w.x + v.y * w.y + v.z * w.z + v.w * w.w;
    }
    return sum;
}

vec4 window_sum(int item, ivec2 at, int c, int vectors) {
    vec4 sum = vec4(0.0);
    [[dont_unroll]] for (int tap = 0; tap < 9; tap++) {
        const ivec2 p = at + ivec2(tap % 3 - before_w, tap / 3 - before_h);
        const bool inside = uint(p.x) < uint(x_w) && uint(p.y) < uint(x_h);
        const int from = x_first + ((item * x_h + p.y) * x_w + p.x) * x_pitch;
        [[dont_unroll]] for (int k = 0; k < x_c; k++) {
            vec4 v = vec4(pad_value);
            if (inside) v = vec4(x[from + k]);
            sum += product(v, tap * x_c + k, c, vectors);
        }
    }
    return sum;
}

void main() {
    const int vectors = (channels + 3) / 4;
    const int index = int(linear_index()), tile = index / vectors, c = index - tile * vectors;
    const int across = (y_w + kOut - 1) / kOut, down = (y_h + kOut - 1) / kOut;
    const int row = tile / across, item = row / down;
    if (item >= y_pixels / (y_w * y_h)) return;
    const ivec2 begin = ivec2(tile - row * across, row - item * down) * kOut;
    vec4 m[6][6];
    [[unroll]] for (int j = 0; j < kIn; j++) {
        [[unroll]] for (int i = 0; i < kIn; i++)
            m[j][i] = vec4(sums[(tile * kPoints + j * kIn + i) * vectors + c]);
        outputs_of_points(m[j]);
    }
    bool finite = true;
    [[unroll]] for (int i = 0; i < kOut; i++) {
        vec4 column[6];
        [[unroll]] for (int j = 0; j < kIn; j++) column[j] = m[j][i];
        outputs_of_points(column);
        [[unroll]] for (int j = 0; j < kOut; j++) {
            m[j][i] = column[j];
            finite = finite && is_finite4(column[j]);
        }
    }
    const int first = (item * y_h + begin.y) * y_w + begin.x;
    if (finite) {
        [[unroll]] for (int i = 0; i < kOut * kOut; i++)
            if (begin.x + i % kOut < y_w && begin.y + i / kOut < y_h)
                store_output(first + i / kOut * y_w + i % kOut, c, c,
                             biased(m[i / kOut][i % kOut], c));
        return;
    }
    [[dont_unroll]] for (int i = 0; i < kOut * kOut; i++) {
        const ivec2 at = begin + ivec2(i % kOut, i / kOut);
        if (at.x < y_w && at.y < y_h)
            store_output((item * y_h + at.y) * y_w + at.x, c, c,
                         biased(window_sum(item, at, c, vectors), c));
    }
}
