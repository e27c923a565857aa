// Softmax or its logarithm (kLog) along an axis: a group for each line, or (kSerial) an invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"

layout(constant_id = 0) const bool kSerial = false;
layout(constant_id = 1) const bool kLog = false;
layout(constant_id = 2) const uint kThreads = 64;
layout(constant_id = 3) const bool kFloats = false;  // outputs are f32 whatever blobs are stored as
layout(local_size_x_id = 2) in;
READS(0, Input, x);
WRITES(1, Output, y);
layout(set = 0, binding = 1) writeonly buffer Floats { float floats[]; };  // the same, as f32
// Lines by their first values: over the axes besides the softmax's.
layout(push_constant) uniform Push {
    uint lines, length, x_step, y_step, x_first, y_first;
    uint sizes[4], x_steps[4], y_steps[4];
};
shared float parts[kThreads];

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
            parts[thread] = sum ? own + other : is_nan(own) || own > other ? own : other;
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
        const float v = float(x[from + i * x_step]);
        most = is_nan(most) || most > v ? most : v;
    }
    most = reduced(most, false);
    float sum = 0.0;
    for (uint i = begin; i < length; i += step)
        sum += exact_exp(float(x[from + i * x_step]) - most);
    sum = reduced(sum, true);
    const float log_sum = kLog ? log(sum) : 0.0;
    for (uint i = begin; i < length; i += step) {
        float v = float(x[from + i * x_step]) - most;
        v = kLog ? v - log_sum : exact_exp(v) / sum;
        if (kFloats)
            floats[to + i * y_step] = v;
        else
            y[to + i * y_step] = STORED(v);
    }
}
