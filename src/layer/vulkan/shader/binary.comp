// f(a, b) for each value of blobs of one shape and layout; one operand may be a number, or one row
// for all rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "extremes.glsl"
#include "binary.glsl"

layout(constant_id = 0) const int kOperation = 0;
layout(constant_id = 1) const bool kScalar = false;
READS4(0, Left, left);
READS4(1, Right, right);
WRITES4(2, Output, y);
// Pitch 0: the same row for all. a, b: factors of both (of Eltwise); b: the number.
layout(push_constant) uniform Push {
    uint count, row_vectors, row_length;
    uint left_first, left_pitch, right_first, right_pitch, y_first, y_pitch;
    float a, b;
};

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const uint row = i / row_vectors, at = i - row * row_vectors;
    vec4 l = vec4(left[left_first + row * left_pitch + at]), r = vec4(b);
    if (!kScalar) {
        r = vec4(right[right_first + row * right_pitch + at]);
        if (a != 1.0) l *= a;
        if (b != 1.0) r *= b;
    }
    vec4 v;
    for (int lane = 0; lane < 4; lane++) v[lane] = binary(l[lane], r[lane], kOperation);
    y[y_first + row * y_pitch + at] = STORED4(first_lanes(v, int(row_length - at * 4u)));
}
