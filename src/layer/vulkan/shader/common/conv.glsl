// What the convolution shaders on channels-last blobs share. Channels are counted in vec4s.
#include "int8.glsl"
#include "affine8.glsl"
layout(constant_id = 0) const int kActivation = 0;
layout(constant_id = 1) const bool kBias = false;
layout(constant_id = 2) const bool kResidual = false;
layout(constant_id = 3) const bool kPointwise = false;  // 1x1, stride 1, no padding

layout(constant_id = 17) const bool kFlat = false;  // one slice along d, of x, y and the window
// For int8 values, which are whole numbers in the type of floats: sums are scaled (1), inputs are
// rounded (2), outputs are rounded (4), and have a zero point (8).
layout(constant_id = 20) const int kInt8 = 0;
const bool kRounds = (kInt8 & 2) != 0;

READS4(0, Input, x);
READS4(1, Weight, weight);
// With kInt8: scale of the input and zero point of the output; then, for each vec4 of channels, the
// sum of padding and weights that is too much, scales, biases, scales of the output.
layout(set = 0, binding = 2) readonly buffer Bias { vec4 bias[]; };
READS4(3, Residual, residual);
WRITES4(4, Output, y);
layout(push_constant) uniform Push {
    int x_w, x_h, x_d, x_c, x_pitch, x_first;
    int y_w, y_h, y_d, y_pixels, y_pitch, y_first;
    int channels, steps;  // outputs of a group; taps * x_c
    int kernel_w, kernel_h, kernel_d, stride_w, stride_h, stride_d;
    int dilation_w, dilation_h, dilation_d, before_w, before_h, before_d;
    int residual_pitch, residual_first;
    float pad_value, a, b;
    int splits;  // groups that share a tile (split.glsl)
};

// An input as it is multiplied.
vec4 arrived(vec4 v) { return kRounds ? rounded4(v * bias[0].x) : v; }

// The convolution's value from the sum of the products; all_c: as store_output() has it.
vec4 biased(vec4 sum, int all_c) {
    if (kInt8 == 0) return kBias ? sum + bias[all_c] : sum;
    precise vec4 v = (sum - bias[4 * all_c + 1]) * bias[4 * all_c + 2];
    v = v + bias[4 * all_c + 3];
    return v;
}

vec4 output_as_int8(vec4 v, int all_c) {
    v *= bias[4 * all_c + 4];
    if ((kInt8 & 8) == 0) return rounded4(v);
    const int zero = int(bias[0].y);
    return vec4(affine_int8(v.x, zero), affine_int8(v.y, zero), affine_int8(v.z, zero),
                affine_int8(v.w, zero));
}

// Where the window of an output pixel begins in the input (axes w, h, d), and the item's first
// pixel.
ivec4 window_of(int pixel) {
    if (kPointwise) return ivec4(pixel, 0, 0, 0);
    int row = pixel / y_w;
    const int ox = pixel - row * y_w;
    int slice = row / y_h;
    const int oy = row - slice * y_h;
    if (kFlat)
        return ivec4(ox * stride_w - before_w, oy * stride_h - before_h, 0, slice * x_w * x_h);
    const int item = slice / y_d;
    const int oz = slice - item * y_d;
    return ivec4(ox * stride_w - before_w, oy * stride_h - before_h, oz * stride_d - before_d,
                 item * x_w * x_h * x_d);
}

// The input of a window at a tap.
vec4 input_at(ivec4 window, int tap, int c) {
    if (kPointwise) return arrived(vec4(x[x_first + window.x * x_pitch + c]));
    const int row = tap / kernel_w, kx = tap - row * kernel_w;
    const int kz = row / kernel_h, ky = row - kz * kernel_h;
    const ivec3 at = window.xyz + ivec3(kx * dilation_w, ky * dilation_h, kz * dilation_d);
    if (any(lessThan(at, ivec3(0))) || any(greaterThanEqual(at, ivec3(x_w, x_h, x_d))))
        return vec4(pad_value);
    const int pixel = window.w + (at.z * x_h + at.y) * x_w + at.x;
    return arrived(vec4(x[x_first + pixel * x_pitch + c]));
}

// The part of a product's row that does not change along the depth: where the window begins, in
// pixels and in the buffer.
struct Row {
    ivec3 window;
    int first;
};
Row row_of(int pixel) {
    const ivec4 w = window_of(pixel);
    return Row(w.xyz, x_first + (w.w + (w.z * x_h + w.y) * x_w + w.x) * x_pitch);
}

// A position along the depth: a group of channels of a tap.
struct Cursor {
    int c, kx, ky, kz;
};
// groups: of a tap.
Cursor cursor_at(int position, int groups) {
    if (kPointwise) return Cursor(position, 0, 0, 0);
    const int tap = position / groups, row = tap / kernel_w, kz = row / kernel_h;
    return Cursor(position - tap * groups, tap - row * kernel_w, row - kz * kernel_h, kz);
}
void advance(inout Cursor at, int by, int groups) {
    at.c += by;
    if (kPointwise) return;
    while (at.c >= groups) {
        at.c -= groups;
        at.kx++;
        if (at.kx == kernel_w) {
            at.kx = 0, at.ky++;
            if (at.ky == kernel_h) at.ky = 0, at.kz++;
        }
    }
}
bool is_before_end(Cursor at, int groups) { return kPointwise ? at.c < groups : at.kz < kernel_d; }
// From the window's first pixel to that of the tap, in the buffer.
int offset_of(Cursor at) {
    if (kPointwise) return 0;
    const int rows = kFlat ? at.ky * dilation_h : at.kz * dilation_d * x_h + at.ky * dilation_h;
    return (rows * x_w + at.kx * dilation_w) * x_pitch;
}
bool is_inside(Row row, Cursor at) {
    if (kPointwise) return true;
    if (kFlat)
        return uint(row.window.x + at.kx * dilation_w) < uint(x_w) &&
               uint(row.window.y + at.ky * dilation_h) < uint(x_h);
    const ivec3 p = row.window + ivec3(at.kx * dilation_w, at.ky * dilation_h, at.kz * dilation_d);
    return uint(p.x) < uint(x_w) && uint(p.y) < uint(x_h) && uint(p.z) < uint(x_d);
}

// Stores four channels of a pixel, and returns them: `c` vec4s from the group's first channel,
// `all_c` from that of the blob.
vec4 store_output(int pixel, int c, int all_c, vec4 sum) {
    if (kResidual) sum += vec4(residual[residual_first + pixel * residual_pitch + all_c]);
    sum = activated4(sum, kActivation, a, b);
    if ((kInt8 & 4) != 0) sum = output_as_int8(sum, all_c);
    const vec4 v = first_lanes(sum, channels - 4 * c);
    y[y_first + pixel * y_pitch + all_c] = STORED4(v);
    return v;
}
