// y = alpha (A B + beta C) with B of few bits: rows of signed integers of 4 or 8 bits in words, a
// scale (by which is multiplied here) and maybe a zero point for each block. A group of 64 makes
// four columns of up to four rows, each invocation a part of the sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"

layout(constant_id = 0) const int kBits = 4;
layout(constant_id = 1) const int kRows = 1;
layout(constant_id = 2) const bool kZeros = false;
layout(constant_id = 3) const bool kInputScales = false;
layout(constant_id = 4) const bool kAddend = false;
layout(local_size_x = 64) in;
READS(0, Input, x);
layout(set = 0, binding = 1) readonly buffer Weight { uint weight[]; };
// Of [column][block], behind them the zero points, then a factor for each value of an input row.
layout(set = 0, binding = 2) readonly buffer Scales { float scales[]; };
READS(3, Addend, addend);
WRITES(4, Output, y);
layout(push_constant) uniform Push {
    int rows, columns, depth, words, blocks, block;  // of a row of B
    int x_first, x_row, addend_first, addend_row, addend_column, y_first;
    float alpha, beta;
};
const int kEach = 32 / kBits;  // values of a word
shared float parts[16][64];

void add_word(int word, int first_column, int first_row, inout float sums[4][4]) {
    const int k = word * kEach, count = min(kEach, depth - k);
    const int zeros = columns * blocks, inputs = kZeros ? 2 * zeros : zeros;
    float values[4][kEach];
    for (int r = 0; r < kRows; r++) {
        const int row = min(first_row + r, rows - 1);
        for (int i = 0; i < kEach; i++) {
            values[r][i] = i < count ? float(x[x_first + row * x_row + k + i]) : 0.0;
            if (kInputScales && i < count) values[r][i] *= scales[inputs + k + i];
        }
    }
    for (int c = 0; c < 4; c++) {
        const int column = min(first_column + c, columns - 1);
        const int bits = int(weight[column * words + word]);
        const int at = column * blocks + k / block;
        const float zero = kZeros ? scales[zeros + at] : 0.0, scale = scales[at];
        for (int r = 0; r < kRows; r++) {
            float sum = 0.0;
            for (int i = 0; i < kEach; i++)
                sum += values[r][i] * (float(bitfieldExtract(bits, i * kBits, kBits)) - zero);
            sums[c][r] += sum * scale;
        }
    }
}

void main() {
    const int thread = int(gl_LocalInvocationID.x);
    const int first_column = int(gl_WorkGroupID.x) * 4, first_row = int(gl_WorkGroupID.y) * kRows;
    float sums[4][4];
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < 4; r++) sums[c][r] = 0.0;
    for (int word = thread; word < words; word += 64)
        add_word(word, first_column, first_row, sums);
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < kRows; r++) parts[c * kRows + r][thread] = sums[c][r];
    barrier();
    for (int half_count = 32; half_count > 0; half_count /= 2) {
        if (thread < half_count)
            for (int i = 0; i < 4 * kRows; i++) parts[i][thread] += parts[i][thread + half_count];
        barrier();
    }
    const int column = first_column + thread / kRows, row = first_row + thread % kRows;
    if (thread >= 4 * kRows || column >= columns || row >= rows) return;
    float v = alpha * parts[thread][0];
    if (kAddend)
        v += beta * float(addend[addend_first + row * addend_row + column * addend_column]);
    y[y_first + row * columns + column] = STORED(v);
}
