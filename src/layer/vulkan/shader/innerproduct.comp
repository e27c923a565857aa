// Products of the rows of a matrix with a vector: a group computes four outputs of one input row,
// each invocation a part of the sums. With kPooled the only row is the average of pixels; with
// kSoftmax the last group to arrive makes the softmax of its outputs. weight: [output][inputs in
// vec4s]. HALVES: common/halves.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "halves.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "extremes.glsl"
#include "activation.glsl"
#include "int8.glsl"

layout(constant_id = 0) const int kActivation = 0;
layout(constant_id = 1) const bool kBias = false;
layout(constant_id = 2) const bool kWhole = false;  // rows of x are whole vec4s
layout(constant_id = 3) const bool kWide = false;   // f16: and whole groups of 8
layout(constant_id = 4) const int kThreads = 64;
layout(constant_id = 5) const bool kAddend = false;
// Of int8 values, which are whole numbers: sums are scaled (1), inputs rounded (2).
layout(constant_id = 6) const int kInt8 = 0;
layout(constant_id = 7) const bool kPooled = false;
layout(constant_id = 8) const bool kSoftmax = false;
layout(constant_id = 9) const bool kFloats = false;  // y is f32 whatever blobs are stored as
layout(local_size_x_id = 4) in;
READS(0, Input, x);
READS4(0, Input4, x4);  // the same
READS4(1, Weight, weight);
// With kInt8: scale of the input; of each output what is too much of its sum, scale, bias.
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
WRITES(3, Output, y);
layout(set = 0, binding = 3) writeonly buffer Floats { float floats[]; };  // the same, as f32
READS(4, Addend, addend);
// With kPooled: [parts of the pixels][inputs in vec4s].
layout(set = 0, binding = 5) readonly buffer Sums { vec4 pixel_sums[]; };
// With kSoftmax: the outputs before it, and how many groups have arrived, 0 between runs.
layout(set = 0, binding = 6) coherent buffer Made { float made[]; };
#define ARRIVE_BINDING 7
#include "arrive.glsl"
layout(push_constant) uniform Push {
    int inputs, outputs, x_first, y_first;
    float a, b;
    int addend_first, addend_row, addend_column;
    float alpha, beta;
    int pooled_parts;
    float pooled_scale;  // 1 / pixels
};
shared vec4 parts[kThreads];
const int kEach = 4;  // outputs of an invocation, at most, with kSoftmax

vec4 arrived(vec4 v) {
    if ((kInt8 & 2) == 0) return v;
    return rounded4(v * bias[0]);
}

vec4 average_at(int k) {
    const int vectors = (inputs + 3) / 4;
    vec4 sum = pixel_sums[k];
    for (int part = 1; part < pooled_parts; part++) sum += pixel_sums[part * vectors + k];
    return sum * pooled_scale;
}

#ifdef STORAGE_F16
#include "pairs.glsl"
// The same, 16 bytes at a time.
layout(set = 0, binding = 0) readonly buffer Input8 { uvec4 x8[]; };
layout(set = 0, binding = 1) readonly buffer Weight8 { uvec4 weight8[]; };

#ifdef HALVES
void add_products8(inout f16vec2 sum, uvec4 a, uvec4 b) {
    [[unroll]] for (int i = 0; i < 4; i++) sum += unpackFloat2x16(a[i]) * unpackFloat2x16(b[i]);
}
float dot8(uvec4 a, uvec4 b) {
    f16vec2 sum = f16vec2(0.0);
    add_products8(sum, a, b);
    return float(sum.x) + float(sum.y);
}
void add_dots(inout vec4 sums, uvec4 v[4], uvec4 w[16]) {
    [[unroll]] for (int o = 0; o < 4; o++) {
        f16vec2 sum = f16vec2(0.0);
        [[unroll]] for (int i = 0; i < 4; i++) add_products8(sum, v[i], w[4 * i + o]);
        sums[o] += float(sum.x) + float(sum.y);
    }
}
#else
float dot2(uint a, uint b) { return dot(unpacked2(a), unpacked2(b)); }
float dot8(uvec4 a, uvec4 b) {
    return (dot2(a.x, b.x) + dot2(a.y, b.y)) + (dot2(a.z, b.z) + dot2(a.w, b.w));
}
#endif

uvec4 arrived8(uvec4 v) {
    if ((kInt8 & 2) == 0) return v;
    const vec4 low = arrived(vec4(unpacked2(v.x), unpacked2(v.y)));
    const vec4 high = arrived(vec4(unpacked2(v.z), unpacked2(v.w)));
    return uvec4(packed2(low.xy), packed2(low.zw), packed2(high.xy),
                 packed2(high.zw));
}

uvec4 input8_at(int from, int k) {
    if (!kPooled) return x8[from + k];
    const vec4 low = average_at(2 * k), high = average_at(2 * k + 1);
    return uvec4(packed2(low.xy), packed2(low.zw), packed2(high.xy), packed2(high.zw));
}

vec4 wide_sums(int thread, int row, ivec4 outputs4) {
    const int groups = inputs / 8, from = x_first / 8 + row * groups;
    const ivec4 rows = outputs4 * groups;
    vec4 sums = vec4(0.0);
    int k = thread;
    // Four at a time, so that many loads are under way at once.
    for (; k + 3 * kThreads < groups; k += 4 * kThreads) {
        uvec4 v[4], w[16];
        [[unroll]] for (int i = 0; i < 16; i++)
            w[i] = weight8[rows[i & 3] + k + kThreads * (i >> 2)];
        [[unroll]] for (int i = 0; i < 4; i++) v[i] = input8_at(from, k + kThreads * i);
        if (kInt8 != 0)
            [[unroll]] for (int i = 0; i < 4; i++) v[i] = arrived8(v[i]);
#ifdef HALVES
        add_dots(sums, v, w);
#else
        [[unroll]] for (int i = 0; i < 16; i++) sums[i & 3] += dot8(v[i >> 2], w[i]);
#endif
    }
    for (; k < groups; k += kThreads) {
        const uvec4 v = arrived8(input8_at(from, k));
        [[unroll]] for (int o = 0; o < 4; o++) sums[o] += dot8(v, weight8[rows[o] + k]);
    }
    return sums;
}
#endif

// Four inputs; what follows the last one is anything.
vec4 input_at(int row, int k) {
    if (kPooled) return average_at(k);
    if (kWhole) return arrived(vec4(x4[x_first / 4 + row * (inputs / 4) + k]));
    vec4 v = vec4(0.0);
    for (int lane = 0; lane < 4; lane++)
        if (4 * k + lane < inputs) v[lane] = float(x[x_first + row * inputs + 4 * k + lane]);
    return arrived(v);
}

#ifdef HALVES
float dot4(f16vec4 a, f16vec4 b) { return dot(vec4(a * b), vec4(1.0)); }
void add_dots(inout vec4 sums, f16vec4 v[4], f16vec4 w[16]) {
    [[unroll]] for (int o = 0; o < 4; o++) {
        f16vec4 sum = v[0] * w[o];
        [[unroll]] for (int i = 1; i < 4; i++) sum += v[i] * w[4 * i + o];
        sums[o] += dot(vec4(sum), vec4(1.0));
    }
}
#else
#define dot4 dot
#endif

vec4 vector_sums(int thread, int row, ivec4 outputs4) {
    const int vectors = (inputs + 3) / 4;
    const ivec4 rows = outputs4 * vectors;
    vec4 sums = vec4(0.0);
    int k = thread;
    // Four at a time, so that many loads are under way at once.
    for (; k + 3 * kThreads < vectors; k += 4 * kThreads) {
        FACTOR4 v[4], w[16];
        [[unroll]] for (int i = 0; i < 4; i++) v[i] = FACTOR4(input_at(row, k + kThreads * i));
        [[unroll]] for (int i = 0; i < 16; i++)
            w[i] = FACTOR4(weight[rows[i & 3] + k + kThreads * (i >> 2)]);
#ifdef HALVES
        add_dots(sums, v, w);
#else
        [[unroll]] for (int i = 0; i < 16; i++) sums[i & 3] += dot(v[i >> 2], w[i]);
#endif
    }
    for (; k < vectors; k += kThreads) {
        const FACTOR4 v = FACTOR4(input_at(row, k));
        [[unroll]] for (int o = 0; o < 4; o++) sums[o] += dot4(v, FACTOR4(weight[rows[o] + k]));
    }
    return sums;
}

void store(int i, float v) {
    if (kFloats)
        floats[y_first + i] = v;
    else
        y[y_first + i] = STORED(v);
}

float reduced(float v, bool sum) {
    const int thread = int(gl_LocalInvocationID.x);
    barrier();
    parts[thread].x = v;
    barrier();
    for (int n = kThreads / 2; n > 0; n /= 2) {
        if (thread < n) {
            const float other = parts[thread + n].x, own = parts[thread].x;
            parts[thread].x = sum ? own + other : maximum(own, other);
        }
        barrier();
    }
    return parts[0].x;
}

void store_softmax(int thread) {
    float values[kEach];
    [[unroll]] for (int i = 0; i < kEach; i++)
        values[i] = made[min(i * kThreads + thread, outputs - 1)];
    float most = -kInfinity;
    [[unroll]] for (int i = 0; i < kEach; i++)
        most = maximum(most, values[i]);
    most = reduced(most, false);
    float sum = 0.0;
    [[unroll]] for (int i = 0; i < kEach; i++) {
        values[i] = exact_exp(values[i] - most);
        if (i * kThreads + thread < outputs) sum += values[i];
    }
    sum = reduced(sum, true);
    [[unroll]] for (int i = 0; i < kEach; i++)
        if (i * kThreads + thread < outputs) store(i * kThreads + thread, values[i] / sum);
}

void store_sum(int row, int output_index, float of_products) {
    float sum;
    if (kInt8 != 0) {
        const int from = 1 + 3 * output_index;
        precise float v = (of_products - bias[from]) * bias[from + 1];
        v = v + bias[from + 2];
        sum = v;
    } else {
        sum = alpha * of_products + (kBias ? bias[output_index] : 0.0);
    }
    if (kAddend)
        sum += beta * float(addend[addend_first + row * addend_row + output_index * addend_column]);
    sum = activated(sum, kActivation, a, b);
    if (kSoftmax)
        made[output_index] = sum;
    else
        store(row * outputs + output_index, sum);
}

void main() {
    const int thread = int(gl_LocalInvocationID.x);
    const int first = int(gl_WorkGroupID.x) * 4, row = int(gl_WorkGroupID.y);
    // Outputs beyond the last one repeat it.
    const ivec4 outputs4 = min(ivec4(first) + ivec4(0, 1, 2, 3), ivec4(outputs - 1));
#ifdef STORAGE_F16
    parts[thread] =
        kWide ? wide_sums(thread, row, outputs4) : vector_sums(thread, row, outputs4);
#else
    parts[thread] = vector_sums(thread, row, outputs4);
#endif
    barrier();
    for (int half_count = kThreads / 2; half_count > 0; half_count /= 2) {
        if (thread < half_count) parts[thread] += parts[thread + half_count];
        barrier();
    }
    const int output_index = first + thread;
    if (thread < 4 && output_index < outputs) store_sum(row, output_index, parts[0][thread]);
    // By outputs, as slices of a dispatch have fewer groups.
    if (kSoftmax && arrive(0, uint(outputs + 3) / 4u)) store_softmax(thread);
}
