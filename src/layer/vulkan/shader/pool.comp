// Pooling on channels-last blobs: an invocation computes four channels of a pixel, with kSquare of
// row gl_WorkGroupID.y of all items.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "extremes.glsl"

layout(constant_id = 0) const bool kMax = false;
// Outputs are planar, `y_pitch` values of a channel, from scalar y_first on.
layout(constant_id = 2) const bool kPlanar = false;
// Of square windows of 2-D blobs whose largest value is wanted; 0: any window.
layout(constant_id = 1) const int kSquare = 0;
READS4(0, Input, x);
WRITES4(1, Output, y);
WRITES(1, Planar, values);  // the same
// As Pooling::Axis.
struct Axis {
    int size, outputs, kernel, stride, before;
    int counted_first, counted_last, first, last;
};
layout(set = 0, binding = 2) readonly buffer Table { Axis axes[3]; };
layout(push_constant) uniform Push {
    uint count;
    int vectors, channels, x_pitch, x_first, y_pitch, y_first;
    int x_w, x_h, y_w, y_h, stride_w, stride_h, before_w, before_h;  // with kSquare
};

// From which position on, how many positions, how many are counted.
ivec3 span_of(Axis axis, int i) {
    if (axis.kernel == 0) {
        const int from = axis.size * i / axis.outputs;
        const int to = (axis.size * (i + 1) + axis.outputs - 1) / axis.outputs;
        return ivec3(from, to - from, to - from);
    }
    const int begin = i * axis.stride, end = begin + axis.kernel;
    const int from = max(begin, axis.first), to = min(end, axis.last);
    const int counted = min(end, axis.counted_last) - max(begin, axis.counted_first);
    if (to <= from) return ivec3(0, 0, max(0, counted));
    return ivec3(from - axis.before, to - from, counted);
}

// All loads are in flight at once. Each invocation runs this once, so that the code is kept short:
// positions outside repeat an edge, and NaN is looked for in the sum of all values.
vec4 square_window(int row, int column, int c) {
    const int item = row / y_h;
    const int left = column * stride_w - before_w, top = (row - item * y_h) * stride_h - before_h;
    if (min(left, top) <= -kSquare || left >= x_w || top >= x_h) return vec4(-3.402823466e38);
    int across[kSquare + 1], down[kSquare + 1];  // one more, as kSquare may be 0
    [[unroll]] for (int k = 0; k < kSquare; k++) {
        across[k] = clamp(left + k, 0, x_w - 1) * x_pitch + x_first + c;
        down[k] = (item * x_h + clamp(top + k, 0, x_h - 1)) * x_w * x_pitch;
    }
    vec4 most = vec4(-kInfinity), sum = vec4(0.0);
    [[unroll]] for (int k = 0; k < kSquare * kSquare; k++) {
        const vec4 v = vec4(x[down[k / kSquare] + across[k % kSquare]]);
        most = max(most, v);
        sum += v;
    }
    if (!is_nan((sum.x + sum.y) + (sum.z + sum.w))) return most;
    most = vec4(-kInfinity);
    [[dont_unroll]] for (int k = 0; k < kSquare * kSquare; k++) {
        const int px = clamp(left + k % kSquare, 0, x_w - 1);
        const int py = item * x_h + clamp(top + k / kSquare, 0, x_h - 1);
        const vec4 v = vec4(x[x_first + (py * x_w + px) * x_pitch + c]);
        for (int lane = 0; lane < 4; lane++) most[lane] = maximum(most[lane], v[lane]);
    }
    return most;
}

void store(int pixel, int c, vec4 v) {
    if (!kPlanar) {
        y[y_first + pixel * y_pitch + c] = STORED4(first_lanes(v, channels - 4 * c));
        return;
    }
    const int item = pixel / y_pitch, within = pixel - item * y_pitch;
    for (int lane = 0; lane < 4; lane++)
        if (4 * c + lane < channels)
            values[y_first + (item * channels + 4 * c + lane) * y_pitch + within] =
                STORED(v[lane]);
}

void main() {
    if (kSquare > 0) {
        const int row = int(gl_WorkGroupID.y);
        const uint at = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
        const int column = int(at / uint(vectors)), c = int(at) - column * vectors;
        if (column >= y_w) return;
        store(row * y_w + column, c, square_window(row, column, c));
        return;
    }
    const uint index = linear_index();
    if (index >= count) return;
    const int pixel = int(index) / vectors, c = int(index) - pixel * vectors;
    int rest = pixel;
    ivec3 spans[3];
    for (int k = 0; k < 3; k++) {
        spans[k] = span_of(axes[k], rest % axes[k].outputs);
        rest /= axes[k].outputs;
    }
    const bool empty = spans[0].y < 1 || spans[1].y < 1 || spans[2].y < 1;
    vec4 most = vec4(empty ? -3.402823466e38 : -kInfinity), sum = vec4(0.0);
    for (int dz = 0; dz < spans[2].y; dz++) {
        for (int dy = 0; dy < spans[1].y; dy++) {
            const int slice = rest * axes[2].size + spans[2].x + dz;
            const int row = slice * axes[1].size + spans[1].x + dy;
            for (int dx = 0; dx < spans[0].y; dx++) {
                const int at = row * axes[0].size + spans[0].x + dx;
                const vec4 v = vec4(x[x_first + at * x_pitch + c]);
                if (kMax)
                    for (int lane = 0; lane < 4; lane++) most[lane] = maximum(most[lane], v[lane]);
                else
                    sum += v;
            }
        }
    }
    const float counted = float(spans[0].z) * float(spans[1].z) * float(spans[2].z);
    const vec4 average = counted > 0.0 ? sum / counted : vec4(0.0);
    store(pixel, c, kMax ? most : average);
}
