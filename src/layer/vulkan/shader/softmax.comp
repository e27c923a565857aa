// Softmax or its logarithm (kLog) along an axis: a group for each line, or (kSerial) an invocation.
// With kPooled the only line is the averages of pixels.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "math.glsl"
#include "extremes.glsl"

layout(constant_id = 0) const bool kSerial = false;
layout(constant_id = 1) const bool kLog = false;
layout(constant_id = 2) const uint kThreads = 64;
layout(constant_id = 3) const bool kFloats = false;  // outputs are f32 whatever blobs are stored as
// Values of a line that are kept in shared memory at most; 0: they are read three times.
layout(constant_id = 4) const uint kKept = 0;
layout(constant_id = 5) const bool kPooled = false;
layout(local_size_x_id = 2) in;
READS(0, Input, x);
WRITES(1, Output, y);
layout(set = 0, binding = 1) writeonly buffer Floats { float floats[]; };  // the same, as f32
// With kPooled: [parts of the pixels][values in vec4s].
layout(set = 0, binding = 2) readonly buffer Sums { float pixel_sums[]; };
// Lines by their first values: over the axes besides the softmax's.
layout(push_constant) uniform Push {
    uint lines, length, x_step, y_step, x_first, y_first;
    uint sizes[4], x_steps[4], y_steps[4];
    uint pooled_parts;
    float pooled_scale;  // 1 / pixels
};
shared float parts[kThreads];
shared float kept[kKept > 0u ? kKept : 1u];

float value(uint from, uint i) {
    if (!kPooled) return float(x[from + i * x_step]);
    // Four at a time, so that many loads are under way at once.
    const uint pitch = (length + 3u) / 4u * 4u;
    float sum = 0.0;
    for (uint first = 0u; first < pooled_parts; first += 4u)
        [[unroll]] for (uint part = first; part < first + 4u; part++) {
            const float v = pixel_sums[min(part, pooled_parts - 1u) * pitch + i];
            if (part < pooled_parts) sum += v;
        }
    return sum * pooled_scale;
}

float reduced(float v, bool sum) {
    if (kSerial) return v;
    const uint thread = gl_LocalInvocationID.x;
    barrier();
    parts[thread] = v;
    barrier();
    for (uint n = kThreads / 2u; n > 0u; n /= 2u) {
        if (thread < n) {
            const float other = parts[thread + n];
            const float own = parts[thread];
            parts[thread] = sum ? own + other : maximum(own, other);
        }
        barrier();
    }
    return parts[0];
}

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint line = kSerial ? group * kThreads + gl_LocalInvocationID.x : group;
    if (line >= lines) return;
    const uint begin = kSerial ? 0u : gl_LocalInvocationID.x, step = kSerial ? 1u : kThreads;
    uint from = x_first, to = y_first, rest = line;
    for (int axis = 0; axis < 4; axis++) {
        const uint at = rest % sizes[axis];
        rest /= sizes[axis];
        from += at * x_steps[axis];
        to += at * y_steps[axis];
    }
    float most = -kInfinity;
    for (uint i = begin; i < length; i += step) {
        const float v = value(from, i);
        if (kKept > 0u) kept[i] = v;
        most = maximum(most, v);
    }
    most = reduced(most, false);
    float sum = 0.0;
    for (uint i = begin; i < length; i += step) {
        const float v = exact_exp((kKept > 0u ? kept[i] : value(from, i)) - most);
        if (kKept > 0u && !kLog) kept[i] = v;
        sum += v;
    }
    sum = reduced(sum, true);
    const float log_sum = kLog ? log(sum) : 0.0;
    for (uint i = begin; i < length; i += step) {
        float v = kKept > 0u ? kept[i] : value(from, i);
        if (kLog)
            v = v - most - log_sum;
        else
            v = (kKept > 0u ? v : exact_exp(v - most)) / sum;
        if (kFloats)
            floats[to + i * y_step] = v;
        else
            y[to + i * y_step] = STORED(v);
    }
}
