// y = x * factor + term, or a slope for negative values, with one of each per channel.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

layout(constant_id = 0) const bool kSlope = false;
layout(constant_id = 1) const bool kFactor = false;
layout(constant_id = 2) const bool kTerm = false;
READS4(0, Input, x);
WRITES4(1, Output, y);
layout(set = 0, binding = 2) readonly buffer Factors { float factors[]; };
layout(set = 0, binding = 3) readonly buffer Terms { float terms[]; };
// In a row, each `step` consecutive values belong to one of `channels` channels.
layout(push_constant) uniform Push {
    uint count, row_vectors, row_length;
    uint x_first, x_pitch, y_first, y_pitch;
    uint channels, step;
};

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const uint row = i / row_vectors, at = i - row * row_vectors;
    vec4 v = vec4(x[x_first + row * x_pitch + at]);
    for (uint lane = 0u; lane < 4u; lane++) {
        const uint c = (at * 4u + lane) / step % channels;
        if (kSlope) {
            if (v[lane] < 0.0) v[lane] *= factors[c];
        } else {
            if (kFactor) v[lane] *= factors[c];
            if (kTerm) v[lane] += terms[c];
        }
    }
    y[y_first + row * y_pitch + at] = STORED4(first_lanes(v, int(row_length - at * 4u)));
}
