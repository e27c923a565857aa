// y = f(x) for each value.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "activation.glsl"

layout(constant_id = 0) const int kType = 0;
READS4(0, Input, x);
WRITES4(1, Output, y);
layout(push_constant) uniform Push {
    uint count, row_vectors, row_length;
    uint x_first, x_pitch, y_first, y_pitch;
    float a, b;
};

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const uint row = i / row_vectors, at = i - row * row_vectors;
    const vec4 v = vec4(x[x_first + row * x_pitch + at]);
    const vec4 f = first_lanes(activated4(v, kType, a, b), int(row_length - at * 4u));
    y[y_first + row * y_pitch + at] = STORED4(f);
}
