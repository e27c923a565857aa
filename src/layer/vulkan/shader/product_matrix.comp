// Convolution as a product on the device's matrix units (VK_KHR_cooperative_matrix): f16 factors,
// f32 sums. y[m][n] = f(sum over k of x(m, k) w[k][n] + bias[n] + added[m][n]): m counts the pixels of
// y, n its channels, k goes through the channels of each point of the window. A group makes a tile of
// kTileM x kTileN from a part of the k; the last group of those that share a tile adds up the parts, in
// their order, whichever it is.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "math.glsl"
#include "activation.glsl"

layout(local_size_x_id = 0) in;  // kThreads
layout(constant_id = 0) const uint kThreads = 128;
layout(constant_id = 1) const uint kTileM = 64;
layout(constant_id = 2) const uint kTileN = 64;
layout(constant_id = 3) const uint kTileK = 64;
// Subgroups side by side along n; the others divide m.
layout(constant_id = 4) const uint kSubgroupsN = 2;
layout(constant_id = 5) const uint kSubgroupsM = 2;
layout(constant_id = 6) const uint kActivation = 0;
layout(constant_id = 7) const bool kAdds = false;
layout(constant_id = 8) const bool kAddsBefore = false;  // the activation
// Whether channels come in whole groups of 8, or else of 4.
layout(constant_id = 9) const bool kWide = true;
layout(constant_id = 10) const bool kPointwise = false;  // a 1x1 window, stride 1
layout(constant_id = 11) const uint kWindowW = 1;
layout(constant_id = 12) const uint kStrideW = 1;
layout(constant_id = 13) const uint kStrideH = 1;
layout(constant_id = 14) const uint kDilationW = 1;
layout(constant_id = 15) const uint kDilationH = 1;

layout(set = 0, binding = 0) readonly buffer Input8 { uvec4 x8[]; };
layout(set = 0, binding = 1) readonly buffer Input4 { uvec2 x4[]; };  // the same
layout(set = 0, binding = 2) readonly buffer Weights { uvec4 w8[]; };
layout(set = 0, binding = 3) readonly buffer Bias { vec4 bias[]; };
layout(set = 0, binding = 4) readonly buffer Added { f16vec4 added[]; };
layout(set = 0, binding = 5) writeonly buffer Output { f16vec4 y[]; };
layout(set = 0, binding = 6) coherent buffer Parts { vec4 parts[]; };
layout(set = 0, binding = 7) coherent buffer Counters { uint counters[]; };

layout(push_constant) uniform Push {
    uint rows, columns;  // of y; columns in scalars
    // Of x in groups of 8 or 4 scalars: of a pixel, between pixels, where it begins.
    uint groups, x_pitch, x_first;
    uint window;  // points
    uint k_part;  // of a group; a multiple of kTileK
    uint w_pitch;  // in uvec4
    uint in_w, in_h, out_w, out_h;
    int pad_w, pad_h;
    uint y_first, y_pitch, added_first, added_pitch;  // in f16vec4
    uint first_counter;
    float a, b;
};

const uint kEdge = 16;  // of the matrices
const uint kTilesM = kTileM / kSubgroupsM / kEdge, kTilesN = kTileN / kSubgroupsN / kEdge;
// Rows in shared memory are 16 bytes longer than a tile's, so that they begin in different banks.
const uint kPitchA = kTileK / 8 + 1, kPitchB = kTileN / 8 + 1, kPitchC = kTileN / 4 + 1;
const uint kSizeA = kTileM * kPitchA, kSizeB = kTileK * kPitchB;
const uint kSizeTiles = 2 * (kSizeA + kSizeB), kSizeC = kTileM * kPitchC;
shared uvec4 memory[kSizeTiles > kSizeC ? kSizeTiles : kSizeC];
shared bool is_last;

// Groups of 8 that a thread loads of each tile.
const uint kLoadsA = (kTileM * kTileK / 8 + kThreads - 1) / kThreads;
const uint kLoadsB = (kTileN * kTileK / 8 + kThreads - 1) / kThreads;
// Threads side by side along a row of A, which they keep from load to load.
const uint kAcrossA = kTileK / 8, kAcrossB = kTileN / 8;

uint row_pixel[kLoadsA];         // of x: where the window begins, kPointwise: the pixel itself
int row_x[kLoadsA], row_y[kLoadsA];

void find_rows(uint m0, uint thread) {
    [[unroll]] for (uint i = 0; i < kLoadsA; i++) {
        const uint m = m0 + thread / kAcrossA + i * (kThreads / kAcrossA);
        if (kPointwise) {
            row_pixel[i] = m;
            row_x[i] = row_y[i] = m < rows ? 0 : -1;
        } else {
            const uint row = m / out_w, item = row / out_h;
            row_pixel[i] = item * in_h * in_w;
            row_x[i] = int((m - row * out_w) * kStrideW) - pad_w;
            row_y[i] = m < rows ? int((row - item * out_h) * kStrideH) - pad_h : -0x1000000;
        }
    }
}

// Scalars 4 or 8 of the k, which count groups of channels, for row i of this thread.
uvec4 load8(uint i, uint group) {
    if (kPointwise) {
        const bool inside = row_x[i] == 0 && group < groups;
        return inside ? x8[x_first + row_pixel[i] * x_pitch + group] : uvec4(0);
    }
    const uint point = group / groups, py = point / kWindowW;
    const int px = row_x[i] + int((point - py * kWindowW) * kDilationW);
    const int qy = row_y[i] + int(py * kDilationH);
    const bool inside = uint(px) < in_w && uint(qy) < in_h && point < window;
    return inside ? x8[x_first + (row_pixel[i] + uint(qy) * in_w + uint(px)) * x_pitch + group -
                       point * groups]
                  : uvec4(0);
}

uvec2 load4(uint i, uint group) {
    const uint point = group / groups, py = point / kWindowW;
    int px, qy;
    if (kPointwise) {
        const bool inside = row_x[i] == 0 && group < groups;
        return inside ? x4[x_first + row_pixel[i] * x_pitch + group] : uvec2(0);
    }
    px = row_x[i] + int((point - py * kWindowW) * kDilationW);
    qy = row_y[i] + int(py * kDilationH);
    const bool inside = uint(px) < in_w && uint(qy) < in_h && point < window;
    return inside ? x4[x_first + (row_pixel[i] + uint(qy) * in_w + uint(px)) * x_pitch + group -
                       point * groups]
                  : uvec2(0);
}

uvec4 load_a(uint i, uint k8) {
    if (kWide) return load8(i, k8);
    return uvec4(load4(i, k8 * 2), load4(i, k8 * 2 + 1));
}

// Four values of the tile at column n of y, row m.
void store_row(uint m, uint n, vec4 v) {
    v += bias[n / 4];
    vec4 more = vec4(0.0);
    if (kAdds) more = vec4(added[added_first + m * added_pitch + n / 4]);
    if (kAdds && kAddsBefore) v += more;
    v = activated4(v, int(kActivation), a, b);
    if (kAdds && !kAddsBefore) v += more;
    y[y_first + m * y_pitch + n / 4] = f16vec4(first_lanes(v, int(columns - n)));
}

void main() {
    const uint thread = gl_LocalInvocationID.x;
    const uint m0 = gl_WorkGroupID.x * kTileM, n0 = gl_WorkGroupID.y * kTileN;
    const uint k_first = gl_WorkGroupID.z * k_part;
    const uint sub_m = gl_SubgroupID % kSubgroupsM * (kTileM / kSubgroupsM);
    const uint sub_n = gl_SubgroupID / kSubgroupsM * (kTileN / kSubgroupsN);
    const uint column_a = thread % kAcrossA, row_a = thread / kAcrossA;
    const uint column_b = thread % kAcrossB, row_b = thread / kAcrossB;
    find_rows(m0, thread);

    coopmat<float, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator> sums[4][4];
    [[unroll]] for (uint i = 0; i < kTilesM; i++)
        [[unroll]] for (uint j = 0; j < kTilesN; j++)
            sums[i][j] =
                coopmat<float, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator>(0.0);

    uvec4 next_a[kLoadsA], next_b[kLoadsB];
    [[unroll]] for (uint i = 0; i < kLoadsA; i++) next_a[i] = load_a(i, k_first / 8 + column_a);
    [[unroll]] for (uint i = 0; i < kLoadsB; i++) {
        const uint row = row_b + i * (kThreads / kAcrossB);
        next_b[i] = w8[(k_first + row) * w_pitch + n0 / 8 + column_b];
    }
    uint at = 0;
    for (uint k = 0; k < k_part; k += kTileK) {
        const uint begin_a = at * (kSizeA + kSizeB), begin_b = begin_a + kSizeA;
        [[unroll]] for (uint i = 0; i < kLoadsA; i++)
            memory[begin_a + (row_a + i * (kThreads / kAcrossA)) * kPitchA + column_a] = next_a[i];
        [[unroll]] for (uint i = 0; i < kLoadsB; i++)
            memory[begin_b + (row_b + i * (kThreads / kAcrossB)) * kPitchB + column_b] = next_b[i];
        barrier();
        const uint ahead = k_first + k + kTileK;
        if (k + kTileK < k_part) {
            [[unroll]] for (uint i = 0; i < kLoadsA; i++)
                next_a[i] = load_a(i, ahead / 8 + column_a);
            [[unroll]] for (uint i = 0; i < kLoadsB; i++) {
                const uint row = row_b + i * (kThreads / kAcrossB);
                next_b[i] = w8[(ahead + row) * w_pitch + n0 / 8 + column_b];
            }
        }
        [[unroll]] for (uint kk = 0; kk < kTileK; kk += kEdge) {
            coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseA> ta[4];
            coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseB> tb;
            [[unroll]] for (uint i = 0; i < kTilesM; i++)
                coopMatLoad(ta[i], memory, begin_a + (sub_m + i * kEdge) * kPitchA + kk / 8, kPitchA,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < kTilesN; j++) {
                coopMatLoad(tb, memory, begin_b + kk * kPitchB + (sub_n + j * kEdge) / 8, kPitchB,
                            gl_CooperativeMatrixLayoutRowMajor);
                [[unroll]] for (uint i = 0; i < kTilesM; i++)
                    sums[i][j] = coopMatMulAdd(ta[i], tb, sums[i][j]);
            }
        }
        at ^= 1;
    }

    const uint splits = gl_NumWorkGroups.z;
    const uint tile = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint tiles = gl_NumWorkGroups.x * gl_NumWorkGroups.y;
    const uint part_size = kTileM * kTileN / 4;
    if (splits > 1) {
        const uint part = (gl_WorkGroupID.z * tiles + tile) * part_size;
        [[unroll]] for (uint i = 0; i < kTilesM; i++)
            [[unroll]] for (uint j = 0; j < kTilesN; j++)
                coopMatStore(sums[i][j], parts,
                             part + (sub_m + i * kEdge) * (kTileN / 4) + (sub_n + j * kEdge) / 4,
                             kTileN / 4, gl_CooperativeMatrixLayoutRowMajor);
        memoryBarrierBuffer();
        barrier();
        if (thread == 0) {
            const uint before = atomicAdd(counters[first_counter + tile], 1u);
            is_last = before == splits - 1;
            // For the next run.
            if (is_last) counters[first_counter + tile] = 0;
        }
        barrier();
        if (!is_last) return;
        memoryBarrierBuffer();
    } else {
        barrier();  // the tiles are read no more
        [[unroll]] for (uint i = 0; i < kTilesM; i++)
            [[unroll]] for (uint j = 0; j < kTilesN; j++)
                coopMatStore(sums[i][j], memory,
                             (sub_m + i * kEdge) * kPitchC + (sub_n + j * kEdge) / 4, kPitchC,
                             gl_CooperativeMatrixLayoutRowMajor);
        barrier();
    }
    for (uint i = thread; i < part_size; i += kThreads) {
        const uint r = i / (kTileN / 4), q = i % (kTileN / 4);
        if (m0 + r >= rows || n0 + q * 4 >= columns) continue;
        vec4 v = vec4(0.0);
        if (splits > 1)
            for (uint s = 0; s < splits; s++) v += parts[(s * tiles + tile) * part_size + i];
        else
            v = uintBitsToFloat(memory[r * kPitchC + q]);
        store_row(m0 + r, n0 + q * 4, v);
    }
}
