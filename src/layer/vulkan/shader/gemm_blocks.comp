// y = f(alpha (A B + beta C)) F with B of few bits: rows of integers of 4 or 8 bits in words, from
// which half their range is to be taken off, a scale (by which is multiplied here) and maybe a zero
// point for each block. A group computes four columns of up to four rows, each invocation a part of
// the sums. Of two products of one row (kPair) half of a group makes those of B and the other half
// those of a second matrix, whose f(..) they are multiplied by.
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
// One row, and blocks of whole words.
layout(constant_id = 5) const bool kWide = false;
layout(constant_id = 6) const bool kSwish = false;
layout(constant_id = 7) const bool kFactor = false;
// One row: divided by the root of its mean square, times norm_factors, before all else.
layout(constant_id = 8) const bool kNorm = false;
layout(constant_id = 9) const bool kNormFactors = false;
layout(constant_id = 10) const bool kPair = false;
layout(constant_id = 11) const int kLanes = 64;  // invocations that share the sums of a matrix
layout(constant_id = 12) const int kThreads = 64;
layout(local_size_x_id = 12) in;
layout(constant_id = 13) const bool kHalfScales = false;
READS(0, Input, x);
READS4(0, Input4, x4);  // the same
layout(set = 0, binding = 1) readonly buffer Weight { uint weight[]; };
// Of [column][block], behind them the zero points, then a factor for each value of an input row.
layout(set = 0, binding = 2) readonly buffer Scales { float scales[]; };
READS(2, HalfScales, half_scales);  // the same with kHalfScales
READS(3, Addend, addend);
layout(set = 0, binding = 3) readonly buffer OtherScales { float other_scales[]; };  // kPair
READS(3, OtherHalfScales, other_half_scales);
WRITES(4, Output, y);
READS(5, Factor, factor);  // of y's shape
layout(set = 0, binding = 5) readonly buffer OtherWeight { uint other_weight[]; };  // kPair
layout(set = 0, binding = 6) readonly buffer NormFactors { float norm_factors[]; };
layout(set = 0, binding = 6) readonly buffer NormFactors4 { vec4 norm_factors4[]; };  // the same
layout(push_constant) uniform Push {
    int rows, columns, depth, words, blocks, block;  // of a row of B, a multiple of four words
    int x_first, x_row, addend_first, addend_row, addend_column, y_first;
    float alpha, beta, swish_beta;
    int factor_first;
    float eps, other_alpha;
};
const int kEach = 32 / kBits;                // values of a word
const int kLow = kBits == 4 ? 5 : 2;         // of them, in the bits of a float's fraction
const float kTwo23 = 8388608.0;
// Of an invocation: its sums, then those of the inputs' squares; those of the other matrix behind
// these.
const int kParts = 4 * kRows + (kNorm ? 1 : 0), kSums = kPair ? kParts + 4 : kParts;
const int kPitch = kLanes + 8;  // rows of neighbours in different banks
shared float parts[kSums * kPitch];
float squares = 0.0;  // of the inputs that this invocation took

// A digit of a word becomes a float without a conversion, which would take longer than loading it:
// its bits are put into the fraction of 2^23 + digit * place(i).
float place(int i) { return float(1 << (i < kLow ? i : i - kLow) * kBits); }
float digit(uint word, int i) {
    const uint mask = ((1u << kBits) - 1u) << uint((i < kLow ? i : i - kLow) * kBits);
    const uint bits = (i < kLow ? word : word >> uint(kLow * kBits)) & mask;
    return uintBitsToFloat(0x4b000000u | bits) -
           (kTwo23 + float(1 << (kBits - 1)) * place(i));
}

float scale_at(int at) { return kHalfScales ? float(half_scales[at]) : scales[at]; }
float other_scale_at(int at) {
    return kHalfScales ? float(other_half_scales[at]) : other_scales[at];
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
        const float zero = kZeros ? scales[zeros + at] : 0.0, scale = scale_at(at);
        for (int r = 0; r < kRows; r++) {
            float sum = 0.0;
            [[unroll]] for (int i = 0; i < kEach; i++)
                sum += values[r][i] * (digit(bits, i) / place(i) - zero);
            sums[c][r] += sum * scale;
        }
    }
}

// The same for one row and whole words, of either matrix.
void add_whole_word(int word, int first_column, bool other, inout float sums[4][4]) {
    const int first = word * kEach;
    const int zeros = columns * blocks, inputs = kZeros ? 2 * zeros : zeros;
    uint bits[4];
    float factors[4], zero[4];
    [[unroll]] for (int c = 0; c < 4; c++) {
        const int column = min(first_column + c, columns - 1), at = column * blocks + first / block;
        if (other) {
            bits[c] = other_weight[column * words + word];
            factors[c] = other_scale_at(at);
            zero[c] = kZeros ? other_scales[zeros + at] : 0.0;
        } else {
            bits[c] = weight[column * words + word];
            factors[c] = scale_at(at);
            zero[c] = kZeros ? scales[zeros + at] : 0.0;
        }
    }
    float values[kEach];
    [[unroll]] for (int i = 0; i < kEach; i++) {
        const int at = (first + i) / 4;
        const float norm_factor = kNormFactors ? norm_factors4[at][i % 4] : 1.0;
        values[i] = normed(vec4(x4[x_first / 4 + at])[i % 4], norm_factor);
        if (kInputScales) values[i] *= scales[inputs + first + i];
        values[i] /= place(i);
    }
    [[unroll]] for (int c = 0; c < 4; c++) {
        float sum = 0.0;
        [[unroll]] for (int i = 0; i < kEach; i++) {
            const float value = digit(bits[c], i);
            sum += values[i] * (kZeros ? value - zero[c] * place(i) : value);
        }
        sums[c][0] += sum * factors[c];
    }
}

// Of eight parts.
float sum_of(int row) {
    float sums[4];
    [[unroll]] for (int k = 0; k < 4; k++)
        sums[k] = parts[row * kPitch + k] + parts[row * kPitch + 4 + k];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

float swish(float v) {
    return v == -kInfinity ? 0.0 : v / (1.0 + exact_exp(-swish_beta * v));
}

void main() {
    const int thread = int(gl_LocalInvocationID.x);
    const bool other = kPair && thread >= kLanes;
    const int lane = kPair ? thread % kLanes : thread;
    const int first_column = int(gl_WorkGroupID.x) * 4, first_row = int(gl_WorkGroupID.y) * kRows;
    // What is needed after the sums is loaded before them.
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
        for (int word = lane; word < depth / kEach; word += kLanes)
            add_whole_word(word, first_column, other, sums);
    else
        for (int word = lane; word * kEach < depth; word += kLanes)
            add_word(word, first_column, first_row, sums);
    const int from = (other ? kParts : 0) * kPitch + lane;
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < kRows; r++) parts[from + (c * kRows + r) * kPitch] = sums[c][r];
    if (kNorm && !other) parts[from + (kParts - 1) * kPitch] = squares;
    barrier();
    for (int i = thread / 8; i < kSums; i += kThreads / 8) {
        const int at = i * kPitch + thread % 8;
        float sum = 0.0;
        for (int k = 0; k < kLanes; k += 8) sum += parts[at + k];
        parts[at] = sum;
    }
    barrier();
    if (!is_made) return;
    const float root = kNorm ? sqrt(sum_of(kParts - 1) / float(depth) + eps) : 1.0;
    float v = alpha * sum_of(thread);
    if (kNorm) v /= root;
    if (kAddend) v += beta * added;
    if (kPair) {
        float gate = other_alpha * sum_of(kParts + thread);
        if (kNorm) gate /= root;
        v *= kSwish ? swish(gate) : gate;
    } else if (kSwish) {
        v = swish(v);
    }
    if (kFactor) v *= multiplied;
    y[y_first + row * columns + column] = STORED(v);
}
