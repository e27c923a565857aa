// Depthwise convolution: an invocation computes four channels of a pixel, with kRows of row
// gl_WorkGroupID.y of all items, which takes fewer divisions. weight: [tap][vec4s]. With kSums a
// group computes 8 vec4s of channels of some pixels of an item, `splits` an invocation, and stores
// what they sum up to. HALVES: common/halves.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "halves.glsl"
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "activation.glsl"
#include "conv.glsl"

// Taps along both axes of a square window; 0: any window.
layout(constant_id = 4) const int kSquare = 0;
layout(constant_id = 5) const bool kSums = false;
layout(constant_id = 6) const bool kRows = false;
layout(set = 0, binding = 5) writeonly buffer Sums { vec4 pixel_sums[]; };  // [item][part][vec4s]
shared vec4 sums[64];

// Declares a sum, adds the product of a tap, and gives what all products sum up to.
#ifdef HALVES
#define BEGIN_SUM               \
    vec4 sum = vec4(0.0);       \
    f16vec4 part = f16vec4(0.0)
#define ADD_TAP(tap, v, w) \
    part += (v) * (w);     \
    if (((tap) & 15) == 15) sum += vec4(part), part = f16vec4(0.0)
#define WHOLE_SUM (sum + vec4(part))
#else
#define BEGIN_SUM vec4 sum = vec4(0.0)
#define ADD_TAP(tap, v, w) sum += (v) * (w)
#define WHOLE_SUM sum
#endif

vec4 any_window(ivec4 window, int c, int vectors) {
    BEGIN_SUM;
    for (int tap = 0; tap < steps; tap++) {
        ADD_TAP(tap, FACTOR4(input_at(window, tap, c)), FACTOR4(weight[tap * vectors + c]));
    }
    return WHOLE_SUM;
}

// Unrolled, so that all loads are in flight at once.
vec4 square_window(ivec4 window, int c, int vectors) {
    BEGIN_SUM;
    const int first = x_first + (window.w + window.y * x_w + window.x) * x_pitch + c;
    [[unroll]] for (int ky = 0; ky < kSquare; ky++) {
        const int y = ky * dilation_h;
        const bool row = uint(window.y + y) < uint(x_h);
        [[unroll]] for (int kx = 0; kx < kSquare; kx++) {
            const int at = kx * dilation_w;
            const bool inside = row && uint(window.x + at) < uint(x_w);
            const int from = inside ? first + (y * x_w + at) * x_pitch : x_first + c;
            const FACTOR4 v = ARRIVED(x[from]);
            const int tap = ky * kSquare + kx;
            ADD_TAP(tap, inside ? v : FACTOR4(pad_value), FACTOR4(weight[tap * vectors + c]));
        }
    }
    return WHOLE_SUM;
}

vec4 made(ivec4 window, int pixel, int c, int vectors) {
    vec4 sum = kSquare > 0 ? square_window(window, c, vectors) : any_window(window, c, vectors);
    return store_output(pixel, c, c, biased(sum, c));
}

void main() {
    const int vectors = (channels + 3) / 4;
    if (kRows) {
        const uint at = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
        const int ox = int(at / uint(vectors)), c = int(at) - ox * vectors;
        const int row = int(gl_WorkGroupID.y), item = row / y_h, oy = row - item * y_h;
        const ivec4 window = ivec4(ox * stride_w - before_w, oy * stride_h - before_h, 0,
                                   item * x_w * x_h);
        if (ox < y_w) made(window, row * y_w + ox, c, vectors);
        return;
    }
    if (!kSums) {
        const int i = int(linear_index()), pixel = i / vectors;
        if (pixel < y_pixels) made(window_of(pixel), pixel, i - pixel * vectors, vectors);
        return;
    }
    const int thread = int(gl_LocalInvocationID.x), part = int(gl_WorkGroupID.y);
    const int c = int(gl_WorkGroupID.x) * 8 + thread % 8;
    const int item = int(gl_WorkGroupID.z), plane = y_w * y_h * y_d;
    vec4 sum = vec4(0.0);
    for (int i = 0; i < splits; i++) {
        const int pixel = (part * splits + i) * 8 + thread / 8;
        const int of_items = item * plane + pixel;
        if (pixel < plane && c < vectors)
            sum += made(window_of(of_items), of_items, c, vectors);
    }
    sums[thread] = sum;
    barrier();
    if (thread >= 8 || c >= vectors) return;
    [[unroll]] for (int i = 1; i < 8; i++) sum += sums[8 * i + thread];
    pixel_sums[(item * int(gl_NumWorkGroups.y) + part) * vectors + c] = sum;
}
