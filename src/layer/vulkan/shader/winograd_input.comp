// The first step of a convolution by Winograd's algorithm: an invocation transforms four channels
// of the inputs of a tile. y: [tile][point][x_c].
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

void main() {
    const int index = int(linear_index()), tile = index / x_c, c = index - tile * x_c;
    const int across = (y_w + kOut - 1) / kOut, down = (y_h + kOut - 1) / kOut;
    const int row = tile / across, item = row / down;
    if (item >= y_pixels / (y_w * y_h)) return;
    const ivec2 begin = ivec2(tile - row * across, row - item * down) * kOut -
                        ivec2(before_w, before_h);
    vec4 d[6][6];
    [[unroll]] for (int j = 0; j < kIn; j++) {
        const int y = begin.y + j, from = x_first + (item * x_h + y) * x_w * x_pitch + c;
        [[unroll]] for (int i = 0; i < kIn; i++) {
            const int x_at = begin.x + i;
            d[j][i] = vec4(pad_value);
            if (uint(y) < uint(x_h) && uint(x_at) < uint(x_w))
                d[j][i] = vec4(x[from + x_at * x_pitch]);
        }
        points_of_inputs(d[j]);
    }
    [[unroll]] for (int i = 0; i < kIn; i++) {
        vec4 column[6];
        [[unroll]] for (int j = 0; j < kIn; j++) column[j] = d[j][i];
        points_of_inputs(column);
        [[unroll]] for (int j = 0; j < kIn; j++)
            y[(tile * kPoints + j * kIn + i) * x_c + c] = STORED4(column[j]);
    }
}
