// Convolution of small windows with stride 1 on matrix units: f16 factors, f32 sums. A group makes
// pixels of y, 16 for each row of a product, from those of x that their windows reach, which it
// loads once for all taps. They are a rectangle of 16 pixels along w, or, with kRowPitch, follow
// each other through the rows of y, of which each is as long as the padded row of x that it reads:
// what the pixels behind its end make is not stored. Groups of channels of x have a multiple of 64, those
// of y of kColumns; windows are 3 wide and high at most. weight: [output][tap, channel of a group].
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
#include "activation.glsl"
#include "conv.glsl"
#include "split.glsl"

layout(constant_id = 4) const uint kThreads = 128;
layout(constant_id = 5) const uint kRows = 8;      // of 16 pixels of y
layout(constant_id = 6) const uint kColumns = 64;  // channels of y
layout(constant_id = 7) const uint kSubgroupsM = 2;  // that divide the rows, and the columns
layout(constant_id = 8) const uint kSubgroupsN = 2;
layout(constant_id = 9) const uint kKernelW = 3;
layout(constant_id = 10) const uint kKernelH = 3;
layout(constant_id = 11) const bool kSplit = true;  // splits > 1
// From pixel to the one below where rows lie end to end, with the padding between them.
layout(constant_id = 12) const uint kRowPitch = 0;
layout(constant_id = 13) const uint kTapsOfStep = 1;  // of which weights are loaded at once
layout(local_size_x_id = 4) in;

const uint kEdge = 16;  // of a product; pixels along w
const uint kTaps = kKernelW * kKernelH;
const bool kEndToEnd = kRowPitch != 0;
const uint kHaloW = kEndToEnd ? kRowPitch : kEdge + kKernelW - 1;
const uint kRowStep = kEndToEnd ? kEdge : kHaloW;  // in the halo, from row to row of a product
const uint kHalo = kEndToEnd ? kRows * kEdge + (kKernelH - 1) * kHaloW + kKernelW - 1
                             : kHaloW * (kRows + kKernelH - 1);
const uint kDepth = 64, kGroups = kDepth / 8;  // channels of a step; in uvec4s
// Pixels and columns in shared memory are 16 bytes longer, so that they begin in different banks.
const uint kPitch = kGroups + 1, kPitchC = kColumns / 4 + 1;
const uint kRowsB = kTapsOfStep * kColumns;
const uint kSizeA = kHalo * kPitch, kSizeB = kRowsB * kPitch;
const uint kSizeTiles = kSizeA + 2 * kSizeB, kSizeSums = kRows * kEdge * kPitchC;
shared uvec4 memory[kSizeTiles > kSizeSums ? kSizeTiles : kSizeSums];

#include "pixel_sums.glsl"

const uint kTilesM = kRows / kSubgroupsM, kTilesN = kColumns / kSubgroupsN / kEdge;
const uint kDown = kThreads / kGroups;
const uint kLoadsA = (kHalo + kDown - 1) / kDown, kLoadsB = (kRowsB + kDown - 1) / kDown;
const uint kSize = kRows * kEdge * kColumns / 4;

layout(set = 0, binding = 0) readonly buffer Input8 { uvec4 x8[]; };
layout(set = 0, binding = 1) readonly buffer Weight8 { uvec4 weight8[]; };

uvec4 next_b[kLoadsB];
coopmat<float, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator> sums[kTilesM * kTilesN];

// first: of the first tap and column; with one tap a step, of this invocation's first column.
void load_weights(int first) {
    const uint down = gl_LocalInvocationID.x / kGroups;
    [[unroll]] for (uint i = 0; i < kLoadsB; i++) {
        const uint row = i * kDown + (kTapsOfStep > 1 ? down : 0);
        const int of_tap = kTapsOfStep > 1 ? int(row / kColumns) * (x_c / 2) : 0;
        if (kRowsB % kDown == 0 || i * kDown + down < kRowsB)
            next_b[i] = weight8[first + int(row % kColumns) * steps / 2 + of_tap];
    }
}

void store_weights(uint begin_b) {
    const uint down = gl_LocalInvocationID.x / kGroups, across = gl_LocalInvocationID.x % kGroups;
    [[unroll]] for (uint i = 0; i < kLoadsB; i++)
        if (kRowsB % kDown == 0 || down + i * kDown < kRowsB)
            memory[begin_b + (down + i * kDown) * kPitch + across] = next_b[i];
}

// oy, ox: of the first pixel of y; first: the first uvec4 of channels.
void load_halo(int item, int oy, int ox, int first) {
    const int down = int(gl_LocalInvocationID.x / kGroups);
    const int across = int(gl_LocalInvocationID.x % kGroups);
    const uvec4 padding = uvec4(packed2(vec2(pad_value)));
    uvec4 loaded[kLoadsA];
    [[unroll]] for (uint i = 0; i < kLoadsA; i++) {
        const int at = down + int(i * kDown) + (kEndToEnd ? ox : 0);
        const int py = oy - before_h + at / int(kHaloW);
        const int px = (kEndToEnd ? 0 : ox) - before_w + at % int(kHaloW);
        loaded[i] = padding;
        if (uint(py) < uint(x_h) && uint(px) < uint(x_w))
            loaded[i] = x8[(x_first + ((item * x_h + py) * x_w + px) * x_pitch) / 2 +
                           first + across];
    }
    [[unroll]] for (uint i = 0; i < kLoadsA; i++)
        if (down + i * kDown < kHalo) memory[(down + i * kDown) * kPitch + across] = loaded[i];
}

// begin_a: of the tap, for the first pixel of y.
void multiply(uint begin_a, uint begin_b, uint sub_m, uint sub_n) {
    [[unroll]] for (uint k = 0; k < kDepth; k += kEdge) {
        coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseA> a[kTilesM];
        coopmat<float16_t, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseB> b;
        [[unroll]] for (uint i = 0; i < kTilesM; i++)
            coopMatLoad(a[i], memory, begin_a + (sub_m + i) * kRowStep * kPitch + k / 8, kPitch,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < kTilesN; j++) {
            coopMatLoad(b, memory, begin_b + (sub_n + j * kEdge) * kPitch + k / 8, kPitch,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0; i < kTilesM; i++)
                sums[i * kTilesN + j] = coopMatMulAdd(a[i], b, sums[i * kTilesN + j]);
        }
    }
}

void add_up(int item, int oy, int ox, int n0, int group) {
    const int across = int(gl_LocalInvocationID.x % kGroups);
    const uint sub_m = gl_SubgroupID % kSubgroupsM * kTilesM;
    const uint sub_n = gl_SubgroupID / kSubgroupsM * (kColumns / kSubgroupsN);
    [[unroll]] for (uint i = 0; i < kTilesM * kTilesN; i++)
        sums[i] = coopmat<float, gl_ScopeSubgroup, kEdge, kEdge, gl_MatrixUseAccumulator>(0.0);
    const ivec2 range = split_range(x_c / int(kDepth / 4));
    const int own = kTapsOfStep > 1 ? 0 : int(gl_LocalInvocationID.x / kGroups);
    const int column = (n0 + own) * steps / 2 + across;
    uint begin_b = kSizeA;
    load_weights(column + range.x * int(kGroups));
    for (int chunk = range.x; chunk < range.y; chunk++) {
        barrier();  // the chunk before is read no more
        load_halo(item, oy, ox, group * (x_c / 2) + chunk * int(kGroups));
        int next = column + chunk * int(kGroups);
        [[dont_unroll]] for (uint tap = 0; tap < kTaps; tap += kTapsOfStep) {
            store_weights(begin_b);
            barrier();
            const bool last = tap + kTapsOfStep == kTaps;
            next = last ? column + (chunk + 1) * int(kGroups) : next + int(kTapsOfStep) * x_c / 2;
            if (!last || chunk + 1 < range.y) load_weights(next);
            [[dont_unroll]] for (uint i = 0; i < kTapsOfStep; i++) {
                const uint begin_a = (tap + i) / kKernelW * kHaloW + (tap + i) % kKernelW;
                multiply(begin_a * kPitch, begin_b + i * kColumns * kPitch, sub_m, sub_n);
            }
            begin_b = begin_b == kSizeA ? kSizeA + kSizeB : kSizeA;
        }
    }
    barrier();
    [[unroll]] for (uint i = 0; i < kTilesM; i++)
        [[unroll]] for (uint j = 0; j < kTilesN; j++)
            coopMatStore(sums[i * kTilesN + j], memory,
                         (sub_m + i) * kEdge * kPitchC + (sub_n + j * kEdge) / 4, kPitchC,
                         gl_CooperativeMatrixLayoutRowMajor);
    barrier();
}

// vec4 `i` of the tile.
vec4 sum_of_group(uint i) {
    return uintBitsToFloat(memory[i / (kColumns / 4) * kPitchC + i % (kColumns / 4)]);
}

void main() {
    const int thread = int(gl_LocalInvocationID.x);
    const int tiles = int(kRows * kEdge), pixels = y_h * int(kRowPitch);
    const int across = kEndToEnd ? (pixels + tiles - 1) / tiles : (y_w + int(kEdge) - 1) / int(kEdge);
    const int down = kEndToEnd ? 1 : (y_h + int(kRows) - 1) / int(kRows);
    const int place = int(gl_WorkGroupID.x) % (across * down);
    const int item = int(gl_WorkGroupID.x) / (across * down);
    const int first = place * tiles;
    const int oy = kEndToEnd ? first / int(kHaloW) : place / across * int(kRows);
    const int ox = kEndToEnd ? first % int(kHaloW) : place % across * int(kEdge);
    const int n0 = int(gl_WorkGroupID.y * kColumns);
    const int group = n0 / channels;  // of channels
    add_up(item, oy, ox, n0, group);
    const int tile = split_tile();
    if (kSplit) {
        const uint to = (uint(tile * splits + split_index())) * kSize;
        [[dont_unroll]] for (uint i = thread; i < kSize; i += kThreads)
            parts[to + i] = sum_of_group(i);
        if (!split_arrive(tile)) return;
    }
    vec4 stored = vec4(0.0);
    [[dont_unroll]] for (int i = thread; i < kSize; i += int(kThreads)) {
        const int at = i / int(kColumns / 4);
        const int along = kEndToEnd ? ox + at : at, width = int(kEndToEnd ? kHaloW : kEdge);
        const int py = oy + along / width, px = (kEndToEnd ? 0 : ox) + along % width;
        const int c = n0 / 4 + i % int(kColumns / 4);
        if (py >= y_h || px >= y_w) continue;
        const vec4 sum = kSplit ? split_sum(tile, int(kSize), i) : sum_of_group(i);
        const int pixel = (item * y_h + py) * y_w + px;
        stored += store_output(pixel, c - group * (channels / 4), c, biased(sum, c));
    }
    if (kSums) store_pixel_sums(stored, kColumns / 4, kThreads, n0 / 4, uint(channels) / 4);
}
