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
layout(constant_id = 16) const bool kGate = false;  // and are multiplied by a factor of their channel
#include "matrix.glsl"

// The same as x and weight, 4 and 8 scalars at a time.
layout(set = 0, binding = 0) readonly buffer Input4 { uvec2 x4[]; };
layout(set = 0, binding = 0) readonly buffer Input8 { uvec4 x8[]; };
layout(set = 0, binding = 1) readonly buffer Weight8 { uvec4 weight8[]; };
layout(set = 0, binding = 7) readonly buffer Gate { uvec2 gate[]; };
layout(set = 0, binding = 7) readonly buffer Gate8 { uvec4 gate8[]; };

int matrix_group() { return int(gl_WorkGroupID.z) / splits; }

uvec4 factors;  // of a step, with kGate
Row rows[kLoadsA];
Cursor cursor;
int columns[kLoadsB];  // where the weights of a column begin

// Groups of channels of a tap.
int tap_groups() { return kWide ? x_c / 2 : x_c; }

uint multiplied(uint a, uint b) { return packHalf2x16(unpackHalf2x16(a) * unpackHalf2x16(b)); }

uvec4 arrived_a(uvec4 v) {
    if (!kGate) return v;
    return uvec4(multiplied(v.x, factors.x), multiplied(v.y, factors.y), multiplied(v.z, factors.z),
                 multiplied(v.w, factors.w));
}

uvec2 load4(Row row, Cursor at, int group) {
    if (!is_before_end(at, x_c)) return uvec2(0);
    if (!is_inside(row, at)) return uvec2(packHalf2x16(vec2(pad_value)));
    return x4[row.first + offset_of(at) + group * x_c + at.c];
}

// Groups of 8 of a column of weights.
int weight_groups() { return (steps * 4 + 63) / 64 * 8; }

void load_step(int k8) {
    const int group = matrix_group();
    const int groups = tap_groups();
    const bool there = is_before_end(cursor, groups);
    if (kWide) {
        const int from = (offset_of(cursor) + group * x_c) / 2 + cursor.c;
        const uint padding = there ? packHalf2x16(vec2(pad_value)) : 0;
        [[unroll]] for (uint i = 0; i < kLoadsA; i++) {
            next_a[i] = uvec4(padding);
            if (there && is_inside(rows[i], cursor)) next_a[i] = x8[rows[i].first / 2 + from];
        }
        if (kGate) factors = there ? gate8[cursor.c] : uvec4(0);
        advance(cursor, int(kAcross), groups);
    } else {
        Cursor second = cursor;
        advance(second, 1, groups);
        [[unroll]] for (uint i = 0; i < kLoadsA; i++)
            next_a[i] = uvec4(load4(rows[i], cursor, group), load4(rows[i], second, group));
        if (kGate) {
            factors.xy = there ? gate[cursor.c] : uvec2(0);
            factors.zw = is_before_end(second, groups) ? gate[second.c] : uvec2(0);
        }
        advance(cursor, int(2 * kAcross), groups);
    }
    const bool weights = kTileK <= 64 || k8 < weight_groups();
    [[unroll]] for (uint i = 0; i < kLoadsB; i++)
        next_b[i] = weights ? weight8[columns[i] + k8] : uvec4(0);
}

void main() {
    const uint thread = gl_LocalInvocationID.x, down = first_down();
    const int m0 = int(gl_WorkGroupID.x * kTileM), n0 = int(gl_WorkGroupID.y * kTileN);
    const int group = matrix_group(), groups = weight_groups(), vectors = (channels + 3) / 4;
    [[unroll]] for (uint i = 0; i < kLoadsA; i++)
        rows[i] = row_of(min(m0 + int(down + i * kDown), y_pixels - 1));
    [[unroll]] for (uint i = 0; i < kLoadsB; i++)
        columns[i] = (group * channels + min(n0 + int(down + i * kDown), channels - 1)) * groups;
    const int first = split_range((groups + int(kAcross) - 1) / int(kAcross)).x * int(kAcross) +
                      int(thread % kAcross);
    cursor = cursor_at(kWide ? first : 2 * first, tap_groups());
    if (!make_tile(groups)) return;
    [[unroll]] for (uint e = 0; e < kMade; e++) {
        const uint i = e * kThreads + thread;
        const int pixel = m0 + int(i / (kTileN / 4)), c = n0 / 4 + int(i % (kTileN / 4));
        if (i >= kSize || pixel >= y_pixels || c >= vectors) continue;
        if (kBias) made[e] += bias[group * vectors + c];
        store_output(pixel, c, group * vectors + c, made[e]);
    }
}
