// Rows of a table by indexes, which are limited to it, plus a bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

layout(constant_id = 0) const bool kBias = false;
layout(set = 0, binding = 0) readonly buffer Indexes { int indexes[]; };
READS(1, Table, table);
READS(2, Bias, bias);
WRITES(3, Output, y);
layout(push_constant) uniform Push { uint count, width, rows, x_first, y_first; };

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const uint at = i % width, row = uint(clamp(indexes[x_first + i / width], 0, int(rows) - 1));
    float v = float(table[row * width + at]);
    if (kBias) v += float(bias[at]);
    y[y_first + i] = STORED(v);
}
