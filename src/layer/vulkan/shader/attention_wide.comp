// softmax(q k^T scale) v on matrix units (VK_KHR_cooperative_matrix), as attention_matrix.comp,
// where there is no mask: each subgroup of a group computes 16 queries of a head of an item, and
// all share the keys and values, 64 at a time; or several subgroups do, of which each takes its
// part of these 64, and the first one adds up what they make. Two passes over the keys: the first
// finds the largest score of each query, so that what the second one adds up stays on the matrix
// units.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : require
#include "pairs.glsl"

layout(constant_id = 0) const uint kSize = 64;  // values of a query and a key, a multiple of 16
layout(constant_id = 1) const uint kOut = 64;   // of a value, likewise
layout(constant_id = 2) const uint kThreads = 128;
layout(constant_id = 3) const uint kSubgroups = 4;  // with queries of their own
layout(constant_id = 4) const uint kShares = 1;     // subgroups that share the keys of each of them
layout(local_size_x_id = 2) in;
layout(set = 0, binding = 0) readonly buffer Queries { uvec4 q[]; };
layout(set = 0, binding = 1) readonly buffer Keys { uvec4 k[]; };
layout(set = 0, binding = 2) readonly buffer Values { uvec4 v[]; };
layout(set = 0, binding = 4) writeonly buffer Output { uvec4 y[]; };
// Steps from row to row, from value to value (1), from head to head, from item to item.
struct Matrix {
    int first, row, column, head, item;
};
layout(push_constant) uniform Push {
    int queries, keys, size, out_size, heads_per_group;
    Matrix q_, k_, v_, y_, mask_;
    float scale;
};

const uint kEdge = 16, kKeys = 64, kTiles = kKeys / kEdge;
const uint kSize8 = kSize / 8, kOut8 = kOut / 8, kMost8 = kSize8 > kOut8 ? kSize8 : kOut8;
// Rows in shared memory have an odd number of 16 bytes, so that they begin in different banks.
// Behind a value are 16 ones, or zeros where there is no key any more.
const uint kPitchK = kSize8 + 1, kPitchV = kOut8 + 3, kPitch = (kMost8 > 8 ? kMost8 : 8) + 1;
const uint kPitchMost = 5;
shared uvec4 key_rows[kKeys * kPitchK], value_rows[kKeys * kPitchV];
const uint kOwn = kTiles / kShares;  // tiles of keys of a subgroup
shared uvec4 areas[kSubgroups * kShares * kEdge * kPitch];  // of a subgroup each

const uint kLoadsK = (kKeys * kSize8 + kThreads - 1) / kThreads;
const uint kLoadsV = (kKeys * kOut8 + kThreads - 1) / kThreads;
uvec4 next_k[kLoadsK], next_v[kLoadsV];

#define Sums coopmat<float, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator>
#define Halves coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator>
#define Left coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseA>
#define Right coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseB>

int origin(Matrix m, int head) { return m.first + int(gl_WorkGroupID.z) * m.item + head * m.head; }

// Keys behind the last one are the last one again.
void load_keys(int first, int from) {
    [[unroll]] for (uint i = 0; i < kLoadsK; i++) {
        const uint at = i * kThreads + gl_LocalInvocationID.x;
        const int j = min(first + int(at / kSize8), keys - 1);
        next_k[i] = k[(from + j * k_.row) / 8 + int(at % kSize8)];
    }
}
void load_values(int first, int from) {
    [[unroll]] for (uint i = 0; i < kLoadsV; i++) {
        const uint at = i * kThreads + gl_LocalInvocationID.x;
        const int j = first + int(at / kOut8);
        next_v[i] = uvec4(0);
        if (j < keys) next_v[i] = v[(from + j * v_.row) / 8 + int(at % kOut8)];
    }
}
void keep_keys() {
    [[unroll]] for (uint i = 0; i < kLoadsK; i++) {
        const uint at = i * kThreads + gl_LocalInvocationID.x;
        if (at < kKeys * kSize8) key_rows[at / kSize8 * kPitchK + at % kSize8] = next_k[i];
    }
}
void keep_values(int first) {
    [[unroll]] for (uint i = 0; i < kLoadsV; i++) {
        const uint at = i * kThreads + gl_LocalInvocationID.x;
        if (at < kKeys * kOut8) value_rows[at / kOut8 * kPitchV + at % kOut8] = next_v[i];
    }
    for (uint i = gl_LocalInvocationID.x; i < kKeys * 2; i += kThreads)
        value_rows[i / 2 * kPitchV + kOut8 + i % 2] =
            uvec4(first + int(i / 2) < keys ? packed2(vec2(1.0)) : 0u);
}

Left rows[kSize / kEdge];  // of queries
Sums scores(uint tile) {
    Sums sum = Sums(0.0);
    [[unroll]] for (uint i = 0; i < kSize / kEdge; i++) {
        Right b;
        coopMatLoad(b, key_rows, tile * kEdge * kPitchK + i * 2, kPitchK,
                    gl_CooperativeMatrixLayoutColumnMajor);
        sum = coopMatMulAdd(rows[i], b, sum);
    }
    return sum;
}

// Between subgroups that share queries.
void meet() {
    if (kShares > 1)
        barrier();
    else
        subgroupBarrier();
}

void main() {
    const uint own = gl_SubgroupID % kSubgroups, share = gl_SubgroupID / kSubgroups;
    const uint lane = gl_SubgroupInvocationID, area = gl_SubgroupID * kEdge * kPitch;
    const int head = int(gl_WorkGroupID.y), group = head / heads_per_group;
    const int first_row = int((gl_WorkGroupID.x * kSubgroups + own) * kEdge);
    const int from_k = origin(k_, group), from_v = origin(v_, group);
    load_keys(0, from_k);
    for (uint i = lane; i < kEdge * kSize8; i += gl_SubgroupSize) {
        const int row = min(first_row + int(i / kSize8), queries - 1);
        areas[area + i / kSize8 * kPitch + i % kSize8] =
            q[(origin(q_, head) + row * q_.row) / 8 + int(i % kSize8)];
    }
    subgroupBarrier();
    [[unroll]] for (uint i = 0; i < kSize / kEdge; i++)
        coopMatLoad(rows[i], areas, area + i * 2, kPitch, gl_CooperativeMatrixLayoutRowMajor);

    const float infinity = uintBitsToFloat(0x7f800000u);
    Sums most = Sums(-infinity);
    for (int first = 0; first < keys; first += int(kKeys)) {
        keep_keys();
        barrier();
        const bool last = first + int(kKeys) >= keys;
        load_keys(last ? 0 : first + int(kKeys), from_k);
        if (last) load_values(0, from_v);
        [[unroll]] for (uint tile = 0; tile < kOwn; tile++) {
            const Sums s = scores(share * kOwn + tile);
            [[unroll]] for (int i = 0; i < s.length(); i++) most[i] = max(most[i], s[i] * scale);
        }
        barrier();
    }
    // The largest of each row, in all its columns.
    coopMatStore(most, areas, area, kPitchMost, gl_CooperativeMatrixLayoutRowMajor);
    meet();
    vec4 highest = vec4(-infinity);
    [[unroll]] for (uint s = 0; s < kShares; s++) {
        const uint from = (own + s * kSubgroups) * kEdge * kPitch + lane % kEdge * kPitchMost;
        [[unroll]] for (uint i = 0; i < 4; i++)
            highest = max(highest, uintBitsToFloat(areas[from + i]));
    }
    const float one = max(max(highest.x, highest.y), max(highest.z, highest.w));
    meet();
    for (uint i = lane / kEdge; i < 4; i += gl_SubgroupSize / kEdge)
        areas[area + lane % kEdge * kPitchMost + i] =
            floatBitsToUint(vec4(one == -infinity ? 0.0 : one));
    subgroupBarrier();
    coopMatLoad(most, areas, area, kPitchMost, gl_CooperativeMatrixLayoutRowMajor);

    // Behind the products the sums of the weights.
    Sums made[kOut / kEdge + 1];
    [[unroll]] for (uint i = 0; i <= kOut / kEdge; i++) made[i] = Sums(0.0);
    for (int first = 0; first < keys; first += int(kKeys)) {
        keep_keys();
        keep_values(first);
        barrier();
        if (first + int(kKeys) < keys) {
            load_keys(first + int(kKeys), from_k);
            load_values(first + int(kKeys), from_v);
        }
        // As their first bits, 11 in f16 and 8 in bf16, and what these leave.
        Sums rests[kOwn];
        subgroupBarrier();
        [[unroll]] for (uint tile = 0; tile < kOwn; tile++) {
            Sums w = scores(share * kOwn + tile);
            [[unroll]] for (int i = 0; i < w.length(); i++) {
                const float weight = exp2((w[i] * scale - most[i]) * 1.44269504);
                // By bits, since compilers may assume that packing and unpacking changes nothing.
                w[i] = uintBitsToFloat(floatBitsToUint(weight) & stored_bits());
                rests[tile][i] = weight - w[i];
            }
            coopMatStore(Halves(w), areas, area + tile * 2, kPitch,
                         gl_CooperativeMatrixLayoutRowMajor);
        }
        Left weights[kOwn], others[kOwn];
        subgroupBarrier();
        [[unroll]] for (uint tile = 0; tile < kOwn; tile++)
            coopMatLoad(weights[tile], areas, area + tile * 2, kPitch,
                        gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        [[unroll]] for (uint tile = 0; tile < kOwn; tile++)
            coopMatStore(Halves(rests[tile]), areas, area + tile * 2, kPitch,
                         gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        [[unroll]] for (uint tile = 0; tile < kOwn; tile++)
            coopMatLoad(others[tile], areas, area + tile * 2, kPitch,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j <= kOut / kEdge; j++) {
            [[unroll]] for (uint tile = 0; tile < kOwn; tile++) {
                Right b;
                coopMatLoad(b, value_rows,
                            (share * kOwn + tile) * kEdge * kPitchV + j * 2, kPitchV,
                            gl_CooperativeMatrixLayoutRowMajor);
                made[j] = coopMatMulAdd(weights[tile], b, made[j]);
                made[j] = coopMatMulAdd(others[tile], b, made[j]);
            }
        }
        barrier();
    }
    if (kShares > 1) {
        [[unroll]] for (uint j = 0; j <= kOut / kEdge; j++) {
            if (share > 0)
                coopMatStore(made[j], areas, area, kPitchMost, gl_CooperativeMatrixLayoutRowMajor);
            barrier();
            [[unroll]] for (uint s = 1; s < kShares && share == 0; s++) {
                Sums other;
                coopMatLoad(other, areas, (own + s * kSubgroups) * kEdge * kPitch, kPitchMost,
                            gl_CooperativeMatrixLayoutRowMajor);
                made[j] += other;
            }
            barrier();
        }
        if (share > 0) return;
    }
    const Sums all = made[kOut / kEdge];
    [[unroll]] for (uint j = 0; j < kOut / kEdge; j++) {
        Sums mean = made[j];
        [[unroll]] for (int i = 0; i < mean.length(); i++)
            mean[i] = all[i] == 0.0 ? 0.0 : rounded(mean[i] / all[i]);
        coopMatStore(Halves(mean), areas, area + j * 2, kPitch, gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroupBarrier();
    for (uint i = lane; i < kEdge * kOut8; i += gl_SubgroupSize) {
        const int row = first_row + int(i / kOut8);
        if (row < queries)
            y[(origin(y_, head) + row * y_.row) / 8 + int(i % kOut8)] =
                areas[area + i / kOut8 * kPitch + i % kOut8];
    }
}
