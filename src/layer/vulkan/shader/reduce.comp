// One value of each line: the operations of Reduction by their number.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"
#include "extremes.glsl"
#include "functions.glsl"
#include "lines.glsl"

layout(constant_id = 3) const int kOperation = 0;
READS(0, Input, x);
WRITES(1, Output, y);
layout(push_constant) uniform Push {
    uint lines, length, x_first, y_first;
    float coeff;
};

// As line_joined.
int kind() { return kOperation == 4 ? 1 : kOperation == 5 ? 2 : kOperation == 6 ? 3 : 0; }

// What is joined of a value; most: the line's largest.
float term(float v, float most) {
    switch (kOperation) {
        case 1:
        case 7:
            return abs(v);
        case 2:
        case 8:
            return v * v;
        case 10:
            return exact_exp(v - most);
    }
    return v;
}

float result(float sum, float most) {
    switch (kOperation) {
        case 3:
            return sum / float(length);
        case 8:
            return sqrt(sum);
        case 9:
            return exact_log(sum);
        case 10:
            return abs(most) == kInfinity ? most : most + exact_log(sum);
    }
    return sum;
}

void main() {
    const uint line = own_line();
    if (line >= lines) return;
    const uvec3 origin = line_offsets(line) + uvec3(x_first, y_first, 0u);
    float most = 0.0;
    if (kOperation == 10) {
        most = -kInfinity;
        for (uint i = first_in_line(); i < length; i += step_in_line())
            most = joined(most, float(x[origin.x + value_offsets(i).x]), 1);
        most = line_joined(most, 1);
    }
    float sum = kind() == 1 ? -kInfinity : kind() == 2 ? kInfinity : kind() == 3 ? 1.0 : 0.0;
    for (uint i = first_in_line(); i < length; i += step_in_line())
        sum = joined(sum, term(float(x[origin.x + value_offsets(i).x]), most), kind());
    sum = line_joined(sum, kind());
    if (first_in_line() == 0u) y[origin.y] = STORED(result(sum, most) * coeff);
}
