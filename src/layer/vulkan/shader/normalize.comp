// Lines minus their mean, divided by their deviation or length, times factors and plus terms; or
// (kType 7) rounded to 127 steps of their largest value, as int8 products take them.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "math.glsl"
#include "extremes.glsl"
#include "lines.glsl"
#include "int8.glsl"

layout(constant_id = 3) const int kType = 0;  // LineNorm::Type
layout(constant_id = 4) const bool kFactor = false;
layout(constant_id = 5) const bool kTerm = false;
// Values of a line that an invocation keeps from the first time that it reads them; 0: lines of any
// length, which are read three times.
layout(constant_id = 6) const uint kKept = 0;
// One axis within lines and one across: their steps are push constants, for which no load waits.
layout(constant_id = 7) const bool kPlain = false;
READS(0, Input, x);
WRITES(1, Output, y);
layout(set = 0, binding = 3) readonly buffer Factors { float factors[]; };
layout(set = 0, binding = 4) readonly buffer Terms { float terms[]; };
layout(push_constant) uniform Push {
    uint lines, length, x_first, y_first;
    float eps;
    uint within_from, within_to, within_factor, across_from, across_to, across_factor;
};

uvec3 line_begin(uint line) {
    return kPlain ? line * uvec3(across_from, across_to, across_factor) : line_offsets(line);
}
uvec3 value_step(uint i) {
    return kPlain ? i * uvec3(within_from, within_to, within_factor) : value_offsets(i);
}

// What the values are multiplied with, from the sum of squares, or the largest.
float scale_of(float squares) {
    const float mean = squares / float(length);
    switch (kType) {
        case 2:
            return 1.0 / (sqrt(mean) + eps);
        case 3:
            return 1.0;
        case 4:
            return 1.0 / sqrt(squares + eps);
        case 5:
            return 1.0 / maximum(sqrt(squares), eps);
        case 6:
            return 1.0 / sqrt(maximum(squares, eps));
        case 7:
            return squares == 0.0 ? 1.0 : 127.0 / squares;
    }
    return 1.0 / sqrt(mean + eps);
}

float affine(float v, uint at) {
    if (kFactor) v *= factors[at];
    if (kTerm) v += terms[at];
    return v;
}

// All values and factors are loaded before the first is used, so that no load waits for another,
// nor for other invocations.
void kept_line(uvec3 origin, bool centred) {
    const uint kArray = kKept > 0 ? kKept : 1;
    float kept[kArray], factor[kArray], term[kArray], mean = 0.0, squares = 0.0;
    const uint thread = gl_LocalInvocationID.x;
    [[unroll]] for (uint k = 0; k < kKept; k++) {
        const uint i = k * 64u + thread, at = origin.z + value_step(i).z;
        kept[k] = i < length ? float(x[origin.x + value_step(i).x]) : 0.0;
        if (kFactor) factor[k] = i < length ? factors[at] : 0.0;
        if (kTerm) term[k] = i < length ? terms[at] : 0.0;
    }
    if (centred) {
        [[unroll]] for (uint k = 0; k < kKept; k++) mean += kept[k];
        mean = line_joined(mean, 0) / float(length);
    }
    [[unroll]] for (uint k = 0; k < kKept; k++) {
        const float v = kept[k] - mean;
        if (k * 64u + thread < length) squares += v * v;
    }
    const float scale = scale_of(line_joined(squares, 0));
    [[unroll]] for (uint k = 0; k < kKept; k++) {
        const uint i = k * 64u + thread;
        float v = (kept[k] - mean) * scale;
        if (kFactor) v *= factor[k];
        if (kTerm) v += term[k];
        if (i < length) y[origin.y + value_step(i).y] = STORED(v);
    }
}

void main() {
    const uint line = own_line();
    if (line >= lines) return;
    const uvec3 origin = line_begin(line) + uvec3(x_first, y_first, 0u);
    const bool centred = kType == 0 || kType == 2 || kType == 3;
    if (kKept > 0) {
        kept_line(origin, centred);
        return;
    }
    float mean = 0.0, squares = 0.0;
    if (centred) {
        for (uint i = first_in_line(); i < length; i += step_in_line())
            mean += float(x[origin.x + value_step(i).x]);
        mean = line_joined(mean, 0) / float(length);
    }
    for (uint i = first_in_line(); i < length; i += step_in_line()) {
        const float v = float(x[origin.x + value_step(i).x]) - mean;
        if (kType != 7)
            squares += v * v;
        else if (abs(v) > squares)
            squares = abs(v);
    }
    const float scale = scale_of(line_joined(squares, kType == 7 ? 1 : 0));
    for (uint i = first_in_line(); i < length; i += step_in_line()) {
        const uvec3 at = origin + value_step(i);
        float v = (float(x[at.x]) - mean) * scale;
        if (kType == 7) v = whole_int8(v) / scale;
        y[at.y] = STORED(affine(v, at.z));
    }
}
