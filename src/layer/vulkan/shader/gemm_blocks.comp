// y = f(alpha (A B + beta C)) F with B of few bits: rows of integers of 4 or 8 bits in words, from which
// half their range is to be taken off, a scale (by which is multiplied here) and maybe a zero point
// for each block. A group of 64 makes four columns of up to four rows, each invocation a part of the
// sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kBits = 4;
layout(constant_id = 1) const int kRows = 1;
layout(constant_id = 2) const bool kZeros = false;
layout(constant_id = 3) const bool kInputScales = false;
layout(constant_id = 4) const bool kAddend = false;
// One row, and blocks of whole groups of four words.
layout(constant_id = 5) const bool kWide = false;
layout(constant_id = 6) const bool kSwish = false;
layout(constant_id = 7) const bool kFactor = false;
// One row: divided by the root of its mean square, times norm_factors, before all else.
layout(constant_id = 8) const bool kNorm = false;
layout(constant_id = 9) const bool kNormFactors = false;
layout(local_size_x = 64) in;
READS(0, Input, x);
READS4(0, Input4, x4);  // the same
layout(set = 0, binding = 1) readonly buffer Weight { uint weight[]; };
layout(set = 0, binding = 1) readonly buffer Weight4 { uvec4 weight4[]; };  // the same
// Of [column][block], behind them the zero points, then a factor for each value of an input row.
layout(set = 0, binding = 2) readonly buffer Scales { float scales[]; };
READS(3, Addend, addend);
WRITES(4, Output, y);
READS(5, Factor, factor);  // of y's shape
layout(set = 0, binding = 6) readonly buffer NormFactors { float norm_factors[]; };
layout(set = 0, binding = 6) readonly buffer NormFactors4 { vec4 norm_factors4[]; };  // the same
layout(push_constant) uniform Push {
    int rows, columns, depth, words, blocks, block;  // of a row of B, a multiple of four words
    int x_first, x_row, addend_first, addend_row, addend_column, y_first;
    float alpha, beta, swish_beta;
    int factor_first;
    float eps;
};
const int kEach = 32 / kBits;                // values of a word
const int kLow = kBits == 4 ? 5 : 2;         // of them, in the bits of a float's fraction
const float kTwo23 = 8388608.0;
shared float parts[16][64];
float squares = 0.0;  // of the inputs that this invocation took

// A digit of a word becomes a float without a conversion, which would take longer than the memory: its
// bits as they lie in the fraction of 2^23 + digit * place(i).
float place(int i) { return float(1 << (i < kLow ? i : i - kLow) * kBits); }
float digit(uint word, int i) {
    const uint mask = ((1u << kBits) - 1u) << uint((i < kLow ? i : i - kLow) * kBits);
    const uint bits = (i < kLow ? word : word >> uint(kLow * kBits)) & mask;
    return uintBitsToFloat(0x4b000000u | bits) -
           (kTwo23 + float(1 << (kBits - 1)) * place(i));
}

float normed(float v, float norm_factor) {
    if (kNorm) squares += v * v;
    return kNormFactors ? v * norm_factor : v;
}

void add_word(int word, int first_column, int first_row, inout float sums[4][4]) {
    const int k = word * kEach, count = min(kEach, depth - k);
    const int zeros = columns * blocks, inputs = kZeros ? 2 * zeros : zeros;
    float values[4][kEach];
    for (int r = 0; r < kRows; r++) {
        const int row = min(first_row + r, rows - 1);
        [[unroll]] for (int i = 0; i < kEach; i++) {
            const float norm_factor = kNormFactors && i < count ? norm_factors[k + i] : 1.0;
            values[r][i] =
                i < count ? normed(float(x[x_first + row * x_row + k + i]), norm_factor) : 0.0;
            if (kInputScales && i < count) values[r][i] *= scales[inputs + k + i];
        }
    }
    for (int c = 0; c < 4; c++) {
        const int column = min(first_column + c, columns - 1);
        const uint bits = weight[column * words + word];
        const int at = column * blocks + k / block;
        const float zero = kZeros ? scales[zeros + at] : 0.0, scale = scales[at];
        for (int r = 0; r < kRows; r++) {
            float sum = 0.0;
            [[unroll]] for (int i = 0; i < kEach; i++)
                sum += values[r][i] * (digit(bits, i) / place(i) - zero);
            sums[c][r] += sum * scale;
        }
    }
}

// Four words of each column at a time.
void add_words(int words4, int first_column, inout float sums[4][4]) {
    const int first = words4 * kEach;  // vec4 of the input
    const int zeros = columns * blocks, inputs = kZeros ? 2 * zeros : zeros;
    const int block_index = 4 * first / block;
    uvec4 bits[4];
    float factors[4];
    [[unroll]] for (int c = 0; c < 4; c++) {
        const int column = min(first_column + c, columns - 1);
        bits[c] = weight4[column * (words / 4) + words4];
        factors[c] = scales[column * blocks + block_index];
    }
    vec4 made = vec4(0.0);
    [[unroll]] for (int word = 0; word < 4; word++) {
        float values[kEach];
        [[unroll]] for (int i = 0; i < kEach; i++) {
            const int k = word * kEach + i;
            const float norm_factor = kNormFactors ? norm_factors4[first + k / 4][k % 4] : 1.0;
            values[i] = normed(vec4(x4[x_first / 4 + first + k / 4])[k % 4], norm_factor);
            if (kInputScales) values[i] *= scales[inputs + 4 * first + k];
            values[i] /= place(i);
        }
        [[unroll]] for (int c = 0; c < 4; c++) {
            const int column = min(first_column + c, columns - 1);
            const float zero = kZeros ? scales[zeros + column * blocks + block_index] : 0.0;
            [[unroll]] for (int i = 0; i < kEach; i++) {
                const float value = digit(bits[c][word], i);
                made[c] += values[i] * (kZeros ? value - zero * place(i) : value);
            }
        }
    }
    [[unroll]] for (int c = 0; c < 4; c++) sums[c][0] += made[c] * factors[c];
}

void main() {
    const int thread = int(gl_LocalInvocationID.x);
    const int first_column = int(gl_WorkGroupID.x) * 4, first_row = int(gl_WorkGroupID.y) * kRows;
    // What comes behind the sums is loaded before them.
    const int column = first_column + thread / kRows, row = first_row + thread % kRows;
    const bool is_made = thread < 4 * kRows && column < columns && row < rows;
    float added = 0.0, multiplied = 1.0;
    if (kAddend && is_made)
        added = float(addend[addend_first + row * addend_row + column * addend_column]);
    if (kFactor && is_made) multiplied = float(factor[factor_first + row * columns + column]);
    float sums[4][4];
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < 4; r++) sums[c][r] = 0.0;
    if (kWide)
        for (int i = thread; i < words / 4; i += 64) add_words(i, first_column, sums);
    else
        for (int word = thread; word * kEach < depth; word += 64)
            add_word(word, first_column, first_row, sums);
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < kRows; r++) parts[c * kRows + r][thread] = sums[c][r];
    const int kParts = 4 * kRows + (kNorm ? 1 : 0);
    if (kNorm) parts[kParts - 1][thread] = squares;
    barrier();
    for (int half_count = 32; half_count > 0; half_count /= 2) {
        if (thread < half_count)
            for (int i = 0; i < kParts; i++) parts[i][thread] += parts[i][thread + half_count];
        barrier();
    }
    if (!is_made) return;
    float v = alpha * parts[thread][0];
    if (kNorm) v /= sqrt(parts[kParts - 1][0] / float(depth) + eps);
    if (kAddend) v += beta * added;
    if (kSwish) v = v == -kInfinity ? 0.0 : v / (1.0 + exact_exp(-swish_beta * v));
    if (kFactor) v *= multiplied;
    y[y_first + row * columns + column] = STORED(v);
}
