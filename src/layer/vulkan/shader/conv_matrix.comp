// Convolution as a product on matrix units (VK_KHR_cooperative_matrix): f16 factors, f32 sums. Rows of
// the product are pixels of y, columns its channels; the depth goes through the channels of each tap.
// weight: [group][columns][depth, a multiple of 64].
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
#include "conv.glsl"
#include "split.glsl"

layout(constant_id = 4) const bool kWide = true;  // inputs come in groups of 8, else of 4
layout(constant_id = 5) const uint kThreads = 128;
layout(constant_id = 6) const uint kTileM = 64;
layout(constant_id = 7) const uint kTileN = 64;
layout(constant_id = 8) const uint kTileK = 64;
// Subgroups that divide the rows, the columns and the depth of a tile.
layout(constant_id = 9) const uint kSubgroupsM = 2;
layout(constant_id = 10) const uint kSubgroupsN = 2;
layout(constant_id = 11) const uint kSubgroupsK = 1;
layout(constant_id = 12) const uint kBuffers = 2;  // tiles in shared memory
layout(constant_id = 13) const uint kM = 16;       // of one product
layout(constant_id = 14) const uint kN = 16;
layout(constant_id = 15) const uint kK = 16;
layout(local_size_x_id = 5) in;

// The same as x and weight, 8 scalars at a time.
layout(set = 0, binding = 0) readonly buffer Input8 { uvec4 x8[]; };
layout(set = 0, binding = 1) readonly buffer Weight8 { uvec4 weight8[]; };

const uint kTilesM = kTileM / kSubgroupsM / kM, kTilesN = kTileN / kSubgroupsN / kN;
const uint kPartK = kTileK / kSubgroupsK;
// Rows in shared memory are 16 bytes longer than a tile's, so that they begin in different banks.
const uint kPitch = kTileK / 8 + 1, kPitchC = kTileN / 4 + 1;
const uint kSizeA = kTileM * kPitch, kSizeB = kTileN * kPitch, kSizeC = kTileM * kPitchC;
const uint kSizeTiles = kBuffers * (kSizeA + kSizeB), kSizeSums = kSubgroupsK * kSizeC;
shared uvec4 memory[kSizeTiles > kSizeSums ? kSizeTiles : kSizeSums];

// Groups of 8 that an invocation loads of each tile, all of one position along the depth.
const uint kLoadsA = (kTileM * kTileK / 8 + kThreads - 1) / kThreads;
const uint kLoadsB = (kTileN * kTileK / 8 + kThreads - 1) / kThreads;
const uint kAcross = kTileK / 8, kDown = kThreads / kAcross;

Row rows[kLoadsA];
Cursor cursor;
int columns[kLoadsB];  // where the weights of a column begin
uvec4 next_a[kLoadsA], next_b[kLoadsB];

// Groups of channels of a tap.
int tap_groups() { return kWide ? x_c / 2 : x_c; }

uvec2 load4(Row row, Cursor at, int group) {
    if (!is_before_end(at, x_c)) return uvec2(0);
    if (!is_inside(row, at)) return uvec2(packHalf2x16(vec2(pad_value)));
    const vec4 v = vec4(x[row.first + offset_of(at) + group * x_c + at.c]);
    return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
}

// Groups of 8 of a column of weights.
int weight_groups() { return (steps * 4 + 63) / 64 * 8; }

// What this invocation loads of a step, from group k8 of the depth on.
void load_step(int group, int k8) {
    const int groups = tap_groups();
    if (kWide) {
        const int from = (offset_of(cursor) + group * x_c) / 2 + cursor.c;
        const bool there = is_before_end(cursor, groups);
        const uint padding = there ? packHalf2x16(vec2(pad_value)) : 0;
        [[unroll]] for (uint i = 0; i < kLoadsA; i++) {
            next_a[i] = uvec4(padding);
            if (there && is_inside(rows[i], cursor)) next_a[i] = x8[rows[i].first / 2 + from];
        }
        advance(cursor, int(kAcross), groups);
    } else {
        Cursor second = cursor;
        advance(second, 1, groups);
        [[unroll]] for (uint i = 0; i < kLoadsA; i++)
            next_a[i] = uvec4(load4(rows[i], cursor, group), load4(rows[i], second, group));
        advance(cursor, int(2 * kAcross), groups);
    }
    const bool there = kTileK <= 64 || k8 < weight_groups();
    [[unroll]] for (uint i = 0; i < kLoadsB; i++)
        next_b[i] = there ? weight8[columns[i] + k8] : uvec4(0);
}

void main() {
    const uint thread = gl_LocalInvocationID.x;
    const int m0 = int(gl_WorkGroupID.x * kTileM), n0 = int(gl_WorkGroupID.y * kTileN);
    const int group = int(gl_WorkGroupID.z) / splits;
    const uint sub_m = gl_SubgroupID % kSubgroupsM * (kTileM / kSubgroupsM);
    const uint sub_n = gl_SubgroupID / kSubgroupsM % kSubgroupsN * (kTileN / kSubgroupsN);
    const uint sub_k = gl_SubgroupID / (kSubgroupsM * kSubgroupsN);
    const uint across = thread % kAcross, down = thread / kAcross;
    const int groups = weight_groups();
    const ivec2 range = split_range((groups + int(kAcross) - 1) / int(kAcross));
    int k8 = range.x * int(kAcross) + int(across);
    [[unroll]] for (uint i = 0; i < kLoadsA; i++)
        rows[i] = row_of(min(m0 + int(down + i * kDown), y_pixels - 1));
    [[unroll]] for (uint i = 0; i < kLoadsB; i++)
        columns[i] = (group * channels + min(n0 + int(down + i * kDown), channels - 1)) * groups;
    cursor = cursor_at(kWide ? k8 : 2 * k8, tap_groups());

    coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> sums[kTilesM * kTilesN];
    [[unroll]] for (uint i = 0; i < kTilesM * kTilesN; i++)
        sums[i] = coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>(0.0);

    uint at = 0;
    if (range.x < range.y) load_step(group, k8);
    for (int step = range.x; step < range.y; step++) {
        const uint begin_a = at * (kSizeA + kSizeB), begin_b = begin_a + kSizeA;
        if (kBuffers == 1) barrier();  // the last step's are read no more
        [[unroll]] for (uint i = 0; i < kLoadsA; i++)
            if (down + i * kDown < kTileM)
                memory[begin_a + (down + i * kDown) * kPitch + across] = next_a[i];
        [[unroll]] for (uint i = 0; i < kLoadsB; i++)
            if (down + i * kDown < kTileN)
                memory[begin_b + (down + i * kDown) * kPitch + across] = next_b[i];
        barrier();
        k8 += int(kAcross);
        if (step + 1 < range.y) load_step(group, k8);
        [[unroll]] for (uint part = 0; part < kPartK; part += kK) {
            const uint k = sub_k * kPartK + part;
            coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA> a[kTilesM];
            coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> b;
            [[unroll]] for (uint i = 0; i < kTilesM; i++)
                coopMatLoad(a[i], memory, begin_a + (sub_m + i * kM) * kPitch + k / 8, kPitch,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < kTilesN; j++) {
                coopMatLoad(b, memory, begin_b + (sub_n + j * kN) * kPitch + k / 8, kPitch,
                            gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < kTilesM; i++)
                    sums[i * kTilesN + j] = coopMatMulAdd(a[i], b, sums[i * kTilesN + j]);
            }
        }
        if (kBuffers == 2) at ^= 1;
    }
    barrier();  // the tiles are read no more
    [[unroll]] for (uint i = 0; i < kTilesM; i++)
        [[unroll]] for (uint j = 0; j < kTilesN; j++)
            coopMatStore(sums[i * kTilesN + j], memory,
                         sub_k * kSizeC + (sub_m + i * kM) * kPitchC + (sub_n + j * kN) / 4,
                         kPitchC, gl_CooperativeMatrixLayoutRowMajor);
    barrier();

    const uint size = kTileM * kTileN / 4, count = (size + kThreads - 1) / kThreads;
    vec4 made[count];
    [[unroll]] for (uint e = 0; e < count; e++) {
        const uint i = min(e * kThreads + thread, size - 1);
        const uint from = i / (kTileN / 4) * kPitchC + i % (kTileN / 4);
        made[e] = uintBitsToFloat(memory[from]);
        [[unroll]] for (uint k = 1; k < kSubgroupsK; k++)
            made[e] += uintBitsToFloat(memory[k * kSizeC + from]);
    }
    if (splits > 1) {
        const int tile = split_tile();
        const uint to = (uint(tile * splits + split_index())) * size;
        [[unroll]] for (uint e = 0; e < count; e++)
            if (e * kThreads + thread < size) parts[to + e * kThreads + thread] = made[e];
        if (!split_arrive(tile)) return;
        [[unroll]] for (uint e = 0; e < count; e++)
            made[e] = split_sum(tile, int(size), int(min(e * kThreads + thread, size - 1)));
    }
    const int vectors = (channels + 3) / 4;
    [[unroll]] for (uint e = 0; e < count; e++) {
        const uint i = e * kThreads + thread, row = i / (kTileN / 4), column = i % (kTileN / 4);
        const int pixel = m0 + int(row), c = n0 / 4 + int(column);
        if (i >= size || pixel >= y_pixels || c >= vectors) continue;
        if (kBias) made[e] += bias[group * vectors + c];
        store_output(pixel, c, group * vectors + c, made[e]);
    }
}
