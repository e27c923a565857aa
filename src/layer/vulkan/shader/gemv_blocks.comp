// y = f(alpha (x B + beta C)) F of one row x, as gemm_blocks.comp's, by dot products of bytes: what
// an invocation takes of x at once becomes integers of 16 bits, 1 / 65024 of its largest value
// apart at most, whose bytes are multiplied by the digits of B exactly. A group makes kColumns
// columns, of both matrices with kPair.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "storage.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kBits = 4;
layout(constant_id = 1) const int kColumns = 4;
layout(constant_id = 2) const bool kZeros = false;
layout(constant_id = 3) const bool kAddend = false;
layout(constant_id = 4) const bool kSwish = false;
layout(constant_id = 5) const bool kFactor = false;
// Divided by the root of its mean square, times norm_factors, before all else.
layout(constant_id = 6) const bool kNorm = false;
layout(constant_id = 7) const bool kNormFactors = false;
layout(constant_id = 8) const bool kPair = false;
layout(constant_id = 9) const int kWords = 4;  // of a column that an invocation takes at once: 1, 4
layout(constant_id = 10) const int kThreads = 64;
layout(local_size_x_id = 10) in;
layout(constant_id = 11) const bool kHalfScales = false;
layout(constant_id = 12) const int kRounds = 1;  // that an invocation takes of x
READS4(0, Input, x4);
layout(set = 0, binding = 1) readonly buffer Weight { uint weight[]; };
layout(set = 0, binding = 1) readonly buffer Weight4 { uvec4 weight4[]; };  // the same
// Of [column][block], behind them the zero points.
layout(set = 0, binding = 2) readonly buffer Scales { float scales[]; };
READS(2, HalfScales, half_scales);  // the same with kHalfScales
READS(3, Addend, addend);
layout(set = 0, binding = 3) readonly buffer OtherScales { float other_scales[]; };  // kPair
READS(3, OtherHalfScales, other_half_scales);
WRITES(4, Output, y);
READS(5, Factor, factor);
layout(set = 0, binding = 5) readonly buffer OtherWeight { uint other_weight[]; };  // kPair
layout(set = 0, binding = 5) readonly buffer OtherWeight4 { uvec4 other_weight4[]; };
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

const int kEach = 32 / kBits;          // values of a word
const int kUnit = kWords * kEach;      // values that an invocation takes at once
const int kQuads = kUnit / 4;
const int kMatrices = kPair ? 2 : 1, kSums = kMatrices * kColumns;
const int kHalf = 1 << (kBits - 1);    // was added to the digits
const float kMost = 32512.0;           // magnitude of inputs as integers
const float kRounding = 12582912.0;    // 1.5 * 2^23: the low bits of a sum with it are an integer
// Parts of sums, by subgroup (of four invocations at least); those of squares behind them.
const int kPitch = kThreads / 4;
shared float parts[2 * kSums * kPitch], square_parts[kPitch];

// What an invocation has of x: bytes of four values each, in the order of the digits, what 1 stands
// for, and the sum of the integers.
uint high[kRounds * kQuads], low[kRounds * kQuads];
float one[kRounds];
int all[kRounds];
float squares = 0.0;
// What it has of the columns of a group.
uint bits[kRounds * kSums * kWords];
float factors[kRounds * kSums], zeros[kRounds * kSums];

// Of four values, whose integers are the low 16 bits.
void split_bytes(int quad, vec4 v, float inverse) {
    const uvec4 bits = floatBitsToUint(v * inverse + kRounding);
    const uint first = bitfieldInsert(bits.x, bits.z, 16, 16);
    const uint second = bitfieldInsert(bits.y, bits.w, 16, 16);
    const uint mask = 0x00ff00ffu;
    low[quad] = (first & mask) | (second << 8 & ~mask);
    high[quad] = (first >> 8 & mask) | (second & ~mask);
}

// What is not finite makes `one` not finite.
void take_inputs(int round) {
    const int unit = int(gl_LocalInvocationID.x) + round * kThreads, quad = round * kQuads;
    vec4 values[kQuads];
    uint most_bits = 0;
    [[unroll]] for (int i = 0; i < kQuads; i++) {
        values[i] = vec4(0.0);
        if (unit * kUnit < depth) values[i] = vec4(x4[x_first / 4 + unit * kQuads + i]);
        if (kNorm) squares += dot(values[i], values[i]);
        if (kNormFactors && unit * kUnit < depth) values[i] *= norm_factors4[unit * kQuads + i];
        const uvec4 bits = floatBitsToUint(abs(values[i]));
        most_bits = max(most_bits, max(max(bits.x, bits.y), max(bits.z, bits.w)));
    }
    const float most = uintBitsToFloat(most_bits);
    const float inverse = most > 1e-30 ? kMost / most : 0.0;
    [[unroll]] for (int i = 0; i < kQuads; i += 2) {
        const vec4 a = values[i], b = values[i + 1];
        if (kBits == 4) {
            split_bytes(quad + i, vec4(a.x, a.z, b.x, b.z), inverse);
            split_bytes(quad + i + 1, vec4(a.y, a.w, b.y, b.w), inverse);
        } else {
            split_bytes(quad + i, a, inverse);
            split_bytes(quad + i + 1, b, inverse);
        }
    }
    one[round] = most / kMost;
    all[round] = 0;
    [[unroll]] for (int i = quad; i < quad + kQuads; i++)
        all[round] += 256 * dot_signed_unsigned(high[i], 0x01010101u, 0) +
                      int(dot_unsigned(low[i], 0x01010101u, 0));
}

void take_columns(int first_column) {
    [[unroll]] for (int round = 0; round < kRounds; round++) {
        // Beyond the end the inputs are 0.
        const int unit = min(int(gl_LocalInvocationID.x) + round * kThreads, depth / kUnit - 1);
        [[unroll]] for (int c = 0; c < kSums; c++) {
            const bool other = c >= kColumns;
            const int from = min(first_column + (other ? c - kColumns : c), columns - 1);
            const int at = from * blocks + unit * kUnit / block, to = round * kSums + c;
            if (kWords == 4) {
                const int four = from * (words / 4) + unit;
                const uvec4 taken = other ? other_weight4[four] : weight4[four];
                [[unroll]] for (int i = 0; i < kWords; i++) bits[to * kWords + i] = taken[i];
            } else {
                bits[to] = other ? other_weight[from * words + unit] : weight[from * words + unit];
            }
            factors[to] = !kHalfScales ? (other ? other_scales[at] : scales[at])
                          : other      ? float(other_half_scales[at])
                                       : float(half_scales[at]);
            if (kZeros)
                zeros[to] = other ? other_scales[columns * blocks + at]
                                  : scales[columns * blocks + at];
        }
    }
}

float part_of_sum(int c) {
    float sum = 0.0;
    [[unroll]] for (int round = 0; round < kRounds; round++) {
        const int quad = round * kQuads, from = round * kSums + c;
        int of_high = 0;
        uint of_low = 0;
        [[unroll]] for (int i = 0; i < kWords; i++) {
            const uint word = bits[from * kWords + i];
            if (kBits == 4) {
                const uint mask = 0x0f0f0f0fu, even = word & mask, odd = word >> 4 & mask;
                of_high += dot_signed_unsigned(high[quad + 2 * i], even, 0) +
                           dot_signed_unsigned(high[quad + 2 * i + 1], odd, 0);
                of_low += dot_unsigned(low[quad + 2 * i], even, 0) +
                          dot_unsigned(low[quad + 2 * i + 1], odd, 0);
            } else {
                of_high += dot_signed_unsigned(high[quad + i], word, 0);
                of_low += dot_unsigned(low[quad + i], word, 0);
            }
        }
        float part = float(256 * of_high + int(of_low) - kHalf * all[round]);
        if (kZeros) part -= zeros[from] * float(all[round]);
        sum += part * (factors[from] * one[round]);
    }
    return sum;
}

float sum_of(int from) {
    float sum = parts[from * kPitch];
    for (int k = 1; k < int(gl_NumSubgroups); k++) sum += parts[from * kPitch + k];
    return sum;
}

float swish(float v) {
    return v == -kInfinity ? 0.0 : v / (1.0 + exact_exp(-swish_beta * v));
}

void main() {
    const int thread = int(gl_LocalInvocationID.x), subgroup = int(gl_SubgroupID);
    int first_column = int(gl_WorkGroupID.x) * kColumns, side = 0;
    take_columns(first_column);
    [[unroll]] for (int round = 0; round < kRounds; round++) take_inputs(round);
    if (kNorm) {
        const float sum = subgroupAdd(squares);
        if (gl_SubgroupInvocationID == 0) square_parts[subgroup] = sum;
    }
    for (; first_column < columns; side = kSums - side) {
        [[unroll]] for (int c = 0; c < kSums; c++) {
            const float sum = subgroupAdd(part_of_sum(c));
            if (gl_SubgroupInvocationID == 0) parts[(side + c) * kPitch + subgroup] = sum;
        }
        const int column = first_column + thread;
        const bool is_made = thread < kColumns && column < columns;
        first_column += int(gl_NumWorkGroups.x) * kColumns;
        // The next ones come while sums are joined.
        if (first_column < columns) take_columns(first_column);
        float added = 0.0, multiplied = 1.0;
        if (kAddend && is_made) added = float(addend[addend_first + column * addend_column]);
        if (kFactor && is_made) multiplied = float(factor[factor_first + column]);
        barrier();
        if (!is_made) continue;
        float root = 1.0;
        if (kNorm) {
            root = square_parts[0];
            for (int k = 1; k < int(gl_NumSubgroups); k++) root += square_parts[k];
            root = sqrt(root / float(depth) + eps);
        }
        float v = alpha * sum_of(side + thread);
        if (kNorm) v /= root;
        if (kAddend) v += beta * added;
        if (kPair) {
            float gate = other_alpha * sum_of(side + kColumns + thread);
            if (kNorm) gate /= root;
            v *= kSwish ? swish(gate) : gate;
        } else if (kSwish) {
            v = swish(v);
        }
        if (kFactor) v *= multiplied;
        y[y_first + column] = STORED(v);
    }
}
