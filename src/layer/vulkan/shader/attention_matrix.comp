// softmax(q k^T scale + mask) v on matrix units (VK_KHR_cooperative_matrix): f16 factors, f32 sums.
// A group of four subgroups computes 16 queries of a head of an item; it goes through the keys, 64
// at a time, and keeps the largest scores and the sums so far. Values of a row lie side by side, in
// eights.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "pairs.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kMask = 0;  // mask.glsl
layout(constant_id = 1) const uint kSize = 64;  // values of a query and a key, a multiple of 16
layout(constant_id = 2) const uint kOut = 64;   // of a value, likewise
layout(constant_id = 3) const uint kThreads = 128;  // at least 128
layout(local_size_x_id = 3) in;
layout(set = 0, binding = 0) readonly buffer Queries { uvec4 q[]; };
layout(set = 0, binding = 1) readonly buffer Keys { uvec4 k[]; };
layout(set = 0, binding = 2) readonly buffer Values { uvec4 v[]; };
READS(3, Masks, masks);
WRITES4(4, Output, y);
READS(5, Columns, columns);
// Steps from row to row, from value to value (1), from head to head, from item to item.
struct Matrix {
    int first, row, column, head, item;
};
layout(push_constant) uniform Push {
    int queries, keys, size, out_size, heads_per_group;
    Matrix q_, k_, v_, y_, mask_;
    float scale;
    int columns_first;
};

#include "mask.glsl"

const uint kEdge = 16, kKeys = 64, kSubgroups = 4;
const uint kSize8 = kSize / 8, kOut8 = kOut / 8;
// Rows in shared memory are 16 bytes longer, so that they begin in different banks.
const uint kPitchK = kSize8 + 1, kPitchV = kOut8 + 1, kPitchMade = kOut / 4 + 1;
const uint kPitchScores = kKeys / 4 + 1, kPitchWeights = kKeys / 8 + 1;
shared uvec4 query_rows[kEdge * kPitchK], key_rows[kKeys * kPitchK], value_rows[kKeys * kPitchV];
shared vec4 scores[kEdge * kPitchScores], products[kEdge * kPitchMade];
// As two f16 values: the first 11 bits, and what these leave.
shared uvec4 weights[kEdge * kPitchWeights], weight_rests[kEdge * kPitchWeights];
shared float parts[128];

const uint kLoadsK = (kKeys * kSize8 + kThreads - 1) / kThreads;
const uint kLoadsV = (kKeys * kOut8 + kThreads - 1) / kThreads;
uvec4 next_k[kLoadsK], next_v[kLoadsV];

int origin(Matrix m, int head) { return m.first + int(gl_WorkGroupID.z) * m.item + head * m.head; }

float larger(float a, float b) { return is_nan(a) || a > b ? a : b; }

void load_keys(int first, int from_k, int from_v) {
    [[unroll]] for (uint i = 0; i < kLoadsK; i++) {
        const uint at = i * kThreads + gl_LocalInvocationID.x;
        const int j = first + int(at / kSize8);
        next_k[i] = uvec4(0);
        if (j < keys) next_k[i] = k[(from_k + j * k_.row) / 8 + int(at % kSize8)];
    }
    [[unroll]] for (uint i = 0; i < kLoadsV; i++) {
        const uint at = i * kThreads + gl_LocalInvocationID.x;
        const int j = first + int(at / kOut8);
        next_v[i] = uvec4(0);
        if (j < keys) next_v[i] = v[(from_v + j * v_.row) / 8 + int(at % kOut8)];
    }
}

void keep_keys() {
    [[unroll]] for (uint i = 0; i < kLoadsK; i++) {
        const uint at = i * kThreads + gl_LocalInvocationID.x;
        if (at < kKeys * kSize8) key_rows[at / kSize8 * kPitchK + at % kSize8] = next_k[i];
    }
    [[unroll]] for (uint i = 0; i < kLoadsV; i++) {
        const uint at = i * kThreads + gl_LocalInvocationID.x;
        if (at < kKeys * kOut8) value_rows[at / kOut8 * kPitchV + at % kOut8] = next_v[i];
    }
}

// Each subgroup 16 of the keys.
void make_scores() {
    const uint tile = gl_SubgroupID;
    coopmat<float, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator> sum =
        coopmat<float, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator>(0.0);
    [[unroll]] for (uint i = 0; i < kSize / kEdge; i++) {
        coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseA> a;
        coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseB> b;
        coopMatLoad(a, query_rows, i * 2, kPitchK, gl_CooperativeMatrixLayoutRowMajor);
        coopMatLoad(b, key_rows, tile * kEdge * kPitchK + i * 2, kPitchK,
                    gl_CooperativeMatrixLayoutColumnMajor);
        sum = coopMatMulAdd(a, b, sum);
    }
    coopMatStore(sum, scores, tile * kEdge / 4, kPitchScores, gl_CooperativeMatrixLayoutRowMajor);
}

// Each subgroup 16 of the values, then the next 16 that no other one makes.
void multiply_values() {
    for (uint tile = gl_SubgroupID; tile < kOut / kEdge; tile += kSubgroups) {
        coopmat<float, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator> sum =
            coopmat<float, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator>(0.0);
        [[unroll]] for (uint i = 0; i < kKeys / kEdge; i++) {
            coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseA> a;
            coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseB> b;
            coopMatLoad(a, weights, i * 2, kPitchWeights, gl_CooperativeMatrixLayoutRowMajor);
            coopMatLoad(b, value_rows, i * kEdge * kPitchV + tile * 2, kPitchV,
                        gl_CooperativeMatrixLayoutRowMajor);
            sum = coopMatMulAdd(a, b, sum);
            coopMatLoad(a, weight_rests, i * 2, kPitchWeights, gl_CooperativeMatrixLayoutRowMajor);
            sum = coopMatMulAdd(a, b, sum);
        }
        coopMatStore(sum, products, tile * kEdge / 4, kPitchMade,
                     gl_CooperativeMatrixLayoutRowMajor);
    }
}

void main() {
    const uint thread = gl_LocalInvocationID.x;
    const int head = int(gl_WorkGroupID.y), group = head / heads_per_group;
    const int first_row = int(gl_WorkGroupID.x * kEdge);
    const int from_k = origin(k_, group), from_v = origin(v_, group);
    for (uint i = thread; i < kEdge * kSize8; i += kThreads) {
        const int row = min(first_row + int(i / kSize8), queries - 1);
        query_rows[i / kSize8 * kPitchK + i % kSize8] =
            q[(origin(q_, head) + row * q_.row) / 8 + int(i % kSize8)];
    }
    // An invocation has a row, and an eighth of the keys and of the output's values.
    const bool works = thread < 128;
    const uint local = thread / 8 % kEdge, part = thread % 8;
    const int row = min(first_row + int(local), queries - 1);
    const int from_mask = mask_row(head, row);
    float most = -kInfinity, sum = 0.0;
    const uint kMade = (kOut / 4 + 7) / 8;
    vec4 total[kMade];
    [[unroll]] for (uint i = 0; i < kMade; i++) total[i] = vec4(0.0);
    load_keys(0, from_k, from_v);
    for (int first = 0; first < keys; first += int(kKeys)) {
        keep_keys();
        barrier();
        if (first + int(kKeys) < keys) load_keys(first + int(kKeys), from_k, from_v);
        if (gl_SubgroupID < kSubgroups) make_scores();
        barrier();
        float score[8], highest = -kInfinity;
        [[unroll]] for (uint i = 0; i < 8; i++) {
            const int j = first + int(part * 8 + i);
            score[i] = scores[local * kPitchScores + part * 2 + i / 4][i % 4] * scale;
            if (kMask != 0 && j < keys) score[i] += mask_of(from_mask, j);
            if (j >= keys) score[i] = -kInfinity;
            highest = larger(highest, score[i]);
        }
        if (works) parts[thread] = highest;
        barrier();
        float now = most;
        [[unroll]] for (uint i = 0; i < 8; i++) now = larger(now, parts[local * 8 + i]);
        const bool nothing = now == -kInfinity;
        const float kept = nothing ? 0.0 : exact_exp(most - now);
        sum *= kept;
        uvec4 packed, rest;
        [[unroll]] for (uint i = 0; i < 4; i++) {
            vec2 w = vec2(0.0);
            if (!nothing) w = vec2(exact_exp(score[2 * i] - now), exact_exp(score[2 * i + 1] - now));
            // By bits, since compilers may assume that packing and unpacking changes nothing.
            const vec2 high = uintBitsToFloat(floatBitsToUint(w) & stored_bits());
            packed[i] = packed2(high), rest[i] = packed2(w - high);
            sum += w.x + w.y;
        }
        if (works) {
            weights[local * kPitchWeights + part] = packed;
            weight_rests[local * kPitchWeights + part] = rest;
        }
        most = now;
        barrier();
        if (gl_SubgroupID < kSubgroups) multiply_values();
        barrier();
        [[unroll]] for (uint i = 0; i < kMade; i++)
            total[i] = total[i] * kept + products[local * kPitchMade + min(part + 8 * i, kOut / 4 - 1)];
    }
    barrier();
    if (works) parts[thread] = sum;
    barrier();
    float all = 0.0;
    [[unroll]] for (uint i = 0; i < 8; i++) all += parts[local * 8 + i];
    if (!works || first_row + int(local) >= queries) return;
    const int to = (origin(y_, head) + row * y_.row) / 4;
    [[unroll]] for (uint i = 0; i < kMade; i++)
        if (part + 8 * i < kOut / 4)
            y[to + int(part + 8 * i)] = STORED4(most == -kInfinity ? vec4(0.0) : total[i] / all);
}
