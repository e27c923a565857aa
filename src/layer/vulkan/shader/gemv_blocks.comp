// y = f(alpha (x B + beta C)) F of one row x, as gemm_blocks.comp's, by dot products of bytes: the
// values of x that meet four words of a column (a unit) become integers of 16 bits, 1 / 65024 of
// their largest one apart at most, whose bytes are multiplied by the digits of B exactly. A group
// makes them once, in shared memory; then each of its subgroups makes a column at a time by itself,
// of both matrices with kPair.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "storage.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kBits = 4;
layout(constant_id = 1) const int kAhead = 1;  // units that an invocation loads at once
layout(constant_id = 2) const bool kZeros = false;
layout(constant_id = 3) const bool kAddend = false;
layout(constant_id = 4) const bool kSwish = false;
layout(constant_id = 5) const bool kFactor = false;
// Divided by the root of its mean square, times norm_factors, before all else.
layout(constant_id = 6) const bool kNorm = false;
layout(constant_id = 7) const bool kNormFactors = false;
layout(constant_id = 8) const bool kPair = false;
layout(constant_id = 9) const int kDepth = 32;
layout(constant_id = 10) const int kThreads = 64;
layout(local_size_x_id = 10) in;
layout(constant_id = 11) const bool kHalfScales = false;
READS4(0, Input, x4);
layout(set = 0, binding = 1) readonly buffer Weight { uvec4 weight[]; };
// Of [column][block], behind them the zero points.
layout(set = 0, binding = 2) readonly buffer Scales { float scales[]; };
READS(2, HalfScales, half_scales);  // the same with kHalfScales
READS(3, Addend, addend);
layout(set = 0, binding = 3) readonly buffer OtherScales { float other_scales[]; };  // kPair
READS(3, OtherHalfScales, other_half_scales);
WRITES(4, Output, y);
READS(5, Factor, factor);
layout(set = 0, binding = 5) readonly buffer OtherWeight { uvec4 other_weight[]; };  // kPair
layout(set = 0, binding = 6) readonly buffer NormFactors4 { vec4 norm_factors4[]; };
layout(push_constant) uniform Push {
    int columns, depth, words, blocks, block;  // of a row of B, a multiple of four words
    int x_first, addend_first, addend_column, y_first;
    float alpha, beta, swish_beta;
    int factor_first;
    float eps, other_alpha;
};

// Dot products of four bytes each: the last operand says that they are packed (SPIR-V 1.6, 3.36).
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4451)
uint dot_unsigned(uint a, uint b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4452)
int dot_signed_unsigned(uint a, uint b, spirv_literal int format);

const int kUnit = 128 / kBits, kUnits = kDepth / kUnit;  // values of a unit; units of a column
// Values are converted to bytes eight at a time: a slice.
const int kSlices = kUnit / 8;  // of a unit
const int kAllSlices = kSlices * kUnits;
const int kSums = kPair ? 2 : 1;
const int kHalf = 1 << (kBits - 1);    // was added to the digits
const float kMost = 32512.0;           // magnitude of inputs as integers
const float kRounding = 12582912.0;    // 1.5 * 2^23: the low bits of a sum with it are an integer

// Of [slice of a unit][unit]: the high and the low bytes of the integers, in the order of the
// digits.
shared uvec4 slices[kAllSlices];
// Of a unit: what 1 stands for, as bits, and the sum of the integers.
shared uvec2 units[kUnits];
shared float square_parts[kThreads / 4];  // by subgroup, of four invocations at least

// What an invocation has of the column of its subgroup, or the columns.
uvec4 digits[kAhead * kSums];
float factors[kAhead * kSums], zeros[kAhead * kSums];

// Of four values, whose integers are the low 16 bits: (high, low) bytes.
uvec2 split_bytes(vec4 v, float inverse) {
    const uvec4 bits = floatBitsToUint(v * inverse + kRounding);
    const uint first = bitfieldInsert(bits.x, bits.z, 16, 16);
    const uint second = bitfieldInsert(bits.y, bits.w, 16, 16);
    const uint mask = 0x00ff00ffu;
    return uvec2((first >> 8 & mask) | (second & ~mask), (first & mask) | (second << 8 & ~mask));
}

uint largest(vec4 v) {
    const uvec4 bits = floatBitsToUint(abs(v));
    return max(max(bits.x, bits.y), max(bits.z, bits.w));
}

// Returns the sum of squares of what this invocation takes of x. A value that is not finite makes
// the unit's scale not finite. Slices of a unit are made by neighbours of a subgroup.
float make_bytes() {
    const int invocation = int(gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID);
    float squares = 0.0;
    for (int first = 0; first < kAllSlices; first += kThreads) {
        const int slice = min(first + invocation, kAllSlices - 1);
        const bool is_there = first + invocation < kAllSlices;
        vec4 a = vec4(x4[x_first / 4 + 2 * slice]), b = vec4(x4[x_first / 4 + 2 * slice + 1]);
        if (kNorm && is_there) squares += dot(a, a) + dot(b, b);
        if (kNormFactors) {
            a *= norm_factors4[2 * slice];
            b *= norm_factors4[2 * slice + 1];
        }
        uint most_bits = max(largest(a), largest(b));
        most_bits = max(most_bits, subgroupShuffleXor(most_bits, 1));
        if (kSlices == 4) most_bits = max(most_bits, subgroupShuffleXor(most_bits, 2));
        const float most = uintBitsToFloat(most_bits);
        const float inverse = most > 1e-30 ? kMost / most : 0.0;
        const bool nibbles = kBits == 4;
        const uvec2 p = split_bytes(nibbles ? vec4(a.x, a.z, b.x, b.z) : a, inverse);
        const uvec2 q = split_bytes(nibbles ? vec4(a.y, a.w, b.y, b.w) : b, inverse);
        const uint ones = 0x01010101u;
        int all = 256 * (dot_signed_unsigned(p.x, ones, 0) + dot_signed_unsigned(q.x, ones, 0)) +
                  int(dot_unsigned(p.y, ones, 0) + dot_unsigned(q.y, ones, 0));
        all += subgroupShuffleXor(all, 1);
        if (kSlices == 4) all += subgroupShuffleXor(all, 2);
        const int unit = slice / kSlices, part = slice % kSlices;
        if (!is_there) break;
        slices[part * kUnits + unit] = uvec4(p.x, q.x, p.y, q.y);
        if (part == 0) units[unit] = uvec2(floatBitsToUint(most / kMost), uint(all));
    }
    return squares;
}

// Of a column, the units from first_unit.
void take_columns(int column, int first_unit) {
    [[unroll]] for (int i = 0; i < kAhead; i++) {
        const int unit = min(first_unit + i * int(gl_SubgroupSize), kUnits - 1);
        const int word = column * (words / 4) + unit;
        const int block_at = column * blocks + unit * kUnit / block;
        [[unroll]] for (int c = 0; c < kSums; c++) {
            const int to = i * kSums + c;
            digits[to] = c > 0 ? other_weight[word] : weight[word];
            factors[to] = !kHalfScales ? (c > 0 ? other_scales[block_at] : scales[block_at])
                          : c > 0      ? float(other_half_scales[block_at])
                                       : float(half_scales[block_at]);
            if (kZeros)
                zeros[to] = c > 0 ? other_scales[columns * blocks + block_at]
                                  : scales[columns * blocks + block_at];
        }
    }
}

void add_up(int first_unit, inout float sums[kSums]) {
    [[unroll]] for (int i = 0; i < kAhead; i++) {
        const int unit = first_unit + i * int(gl_SubgroupSize);
        if (unit >= kUnits) break;
        int of_high[kSums];
        uint of_low[kSums];
        [[unroll]] for (int c = 0; c < kSums; c++) of_high[c] = 0, of_low[c] = 0;
        [[unroll]] for (int k = 0; k < kSlices; k++) {
            const uvec4 bytes = slices[k * kUnits + unit];
            [[unroll]] for (int c = 0; c < kSums; c++) {
                const uvec4 words = digits[i * kSums + c];
                const uint mask = 0x0f0f0f0fu;
                const bool nibbles = kBits == 4;
                const uint even = nibbles ? words[k] & mask : words[2 * k % 4];
                const uint odd = nibbles ? words[k] >> 4 & mask : words[(2 * k + 1) % 4];
                of_high[c] += dot_signed_unsigned(bytes.x, even, 0) +
                              dot_signed_unsigned(bytes.y, odd, 0);
                of_low[c] += dot_unsigned(bytes.z, even, 0) + dot_unsigned(bytes.w, odd, 0);
            }
        }
        const float one = uintBitsToFloat(units[unit].x);
        const int all = int(units[unit].y);
        [[unroll]] for (int c = 0; c < kSums; c++) {
            float part = float(256 * of_high[c] + int(of_low[c]) - kHalf * all);
            if (kZeros) part -= zeros[i * kSums + c] * float(all);
            sums[c] += part * (factors[i * kSums + c] * one);
        }
    }
}

float swish(float v) {
    return v == -kInfinity ? 0.0 : v / (1.0 + exp(-swish_beta * v));
}

// sum: of the column, gate: of the other matrix's.
void store(int column, float sum, float gate, float root) {
    float v = alpha * sum;
    if (kNorm) v /= root;
    if (kAddend) v += beta * float(addend[addend_first + column * addend_column]);
    if (kPair) {
        gate *= other_alpha;
        if (kNorm) gate /= root;
        v *= kSwish ? swish(gate) : gate;
    } else if (kSwish) {
        v = swish(v);
    }
    if (kFactor) v *= float(factor[factor_first + column]);
    y[y_first + column] = STORED(v);
}

void main() {
    const int lane = int(gl_SubgroupInvocationID);
    const int next = int(gl_NumWorkGroups.x * gl_NumSubgroups);
    const int chunk = kAhead * int(gl_SubgroupSize);
    int column = int(gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID), first_unit = 0;
    take_columns(min(column, columns - 1), lane);
    float squares = make_bytes(), root = 1.0;
    if (kNorm) {
        squares = subgroupAdd(squares);
        if (lane == 0) square_parts[gl_SubgroupID] = squares;
    }
    barrier();
    if (kNorm) {
        squares = square_parts[0];
        for (int k = 1; k < int(gl_NumSubgroups); k++) squares += square_parts[k];
        root = sqrt(squares / float(kDepth) + eps);
    }
    float sums[kSums];
    [[unroll]] for (int c = 0; c < kSums; c++) sums[c] = 0.0;
    while (column < columns) {
        add_up(first_unit + lane, sums);
        first_unit += chunk;
        const int made = column;
        const bool ends = first_unit >= kUnits;
        if (ends) first_unit = 0, column += next;
        // The next ones are loaded while sums are combined.
        if (column < columns) take_columns(column, first_unit + lane);
        if (!ends) continue;
        [[unroll]] for (int c = 0; c < kSums; c++) sums[c] = subgroupAdd(sums[c]);
        if (lane == 0) store(made, sums[0], sums[kSums - 1], root);
        [[unroll]] for (int c = 0; c < kSums; c++) sums[c] = 0.0;
    }
}
