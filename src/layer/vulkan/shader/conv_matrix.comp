// Convolution as a product on matrix units (VK_KHR_cooperative_matrix): f16 factors, f32 sums, or
// with INT8, of which x has whole numbers unless they are rounded here, s8 factors and s32 sums.
// Rows of the product are pixels of y, columns its channels; the depth goes through the channels of
// each tap. weight: [group][columns][depth, a multiple of 64]. PLANAR: of planar inputs
// (common/planar.glsl).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#ifdef INT8
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "pairs.glsl"
#include "math.glsl"
#include "activation.glsl"
#include "conv.glsl"
#include "split.glsl"

layout(constant_id = 4) const bool kWide = true;  // inputs come in groups of 8, else of 4
// Inputs are multiplied by a factor of their channel: not at all, that of the only item, that of
// each item.
layout(constant_id = 16) const int kGate = 0;
#include "matrix.glsl"
#include "planar.glsl"
#if !defined(PLANAR) && !defined(INT8)
#define SUMS
#include "pixel_sums.glsl"
#endif

// The same as x and weight, 4 and 8 scalars at a time.
layout(set = 0, binding = 0) readonly buffer Input4 { uvec2 x4[]; };
layout(set = 0, binding = 0) readonly buffer Input8 { uvec4 x8[]; };
layout(set = 0, binding = 1) readonly buffer Weight8 { uvec4 weight8[]; };
layout(set = 0, binding = 7) readonly buffer Gate { uvec2 gate[]; };
layout(set = 0, binding = 7) readonly buffer Gate8 { uvec4 gate8[]; };

int matrix_group() { return int(split_group()); }

Row rows[kLoadsA];
int columns[kLoadsB];  // where the weights of a column begin

#ifdef PLANAR
uvec4 arrived_a(uint i) { return next_a[i]; }
#else
uvec4 factors[kGate == 2 ? kLoadsA : 1];  // of a step, with kGate
int gates[kLoadsA];                       // of rows, with kGate == 2: where an item's begin
Cursor cursor;

// Groups of channels of a tap.
int tap_groups() { return kWide ? x_c / 2 : x_c; }

#ifdef INT8
// For whole numbers: adding this leaves them in the lowest bits.
uint bytes_of(uvec2 four) {
    const vec4 v = arrived(vec4(unpacked2(four.x), unpacked2(four.y)));
    precise const vec4 above = v + 12582912.0;
    const uvec4 b = floatBitsToUint(above) & 255u;
    return b.x | b.y << 8 | b.z << 16 | b.w << 24;
}
uvec4 arrived_a(uint i) {
    const uvec4 low = next_a[i * kGroups], high = next_a[i * kGroups + 1];
    return uvec4(bytes_of(low.xy), bytes_of(low.zw), bytes_of(high.xy), bytes_of(high.zw));
}
#else
uint multiplied(uint a, uint b) { return packed2(unpacked2(a) * unpacked2(b)); }

uint rounded2(uint two) {
    return packed2(arrived(vec4(unpacked2(two), 0.0, 0.0)).xy);
}

uvec4 arrived_a(uint i) {
    const uvec4 v = next_a[i];
    if (kRounds) return uvec4(rounded2(v.x), rounded2(v.y), rounded2(v.z), rounded2(v.w));
    if (kGate == 0) return v;
    const uvec4 f = factors[kGate == 2 ? i : 0];
    return uvec4(multiplied(v.x, f.x), multiplied(v.y, f.y), multiplied(v.z, f.z),
                 multiplied(v.w, f.w));
}
#endif

uvec4 gate_at(Cursor at, int first, int groups) {
    if (kWide) return is_before_end(at, groups) ? gate8[first / 2 + at.c] : uvec4(0);
    Cursor second = at;
    advance(second, 1, groups);
    return uvec4(is_before_end(at, groups) ? gate[first + at.c] : uvec2(0),
                 is_before_end(second, groups) ? gate[first + second.c] : uvec2(0));
}

uvec2 load4(Row row, Cursor at, int group) {
    if (!is_before_end(at, x_c)) return uvec2(0);
    if (!is_inside(row, at)) return uvec2(packed2(vec2(pad_value)));
    return x4[row.first + offset_of(at) + group * x_c + at.c];
}
#endif

// 16 bytes of a column of weights.
int weight_groups() { return (steps * 4 + 63) / 64 * 64 / int(kEach); }

void load_step(int k16) {
#ifdef PLANAR
    const Group low = group_at(2 * k16), high = group_at(2 * k16 + 1);
    [[unroll]] for (uint i = 0; i < kLoadsA; i++)
        next_a[i] = kRowGroups % 2 == 0
                        ? halves8(rows[i], low)
                        : uvec4(halves4(rows[i], low), halves4(rows[i], high));
#else
    const int group = matrix_group();
    const int groups = tap_groups();
    if (kGate == 1) factors[0] = gate_at(cursor, 0, groups);
    if (kGate == 2)
        [[unroll]] for (uint i = 0; i < kLoadsA; i++)
            factors[kGate == 2 ? i : 0] = gate_at(cursor, gates[i], groups);
    [[unroll]] for (uint g = 0; g < kGroups; g++) {
        const int step = g + 1 < kGroups ? 1 : int((kAcross - 1) * kGroups + 1);
        if (kWide) {
            const bool there = is_before_end(cursor, groups);
            const int from = (offset_of(cursor) + group * x_c) / 2 + cursor.c;
            const uint padding = there ? packed2(vec2(pad_value)) : 0;
            [[unroll]] for (uint i = 0; i < kLoadsA; i++) {
                const bool inside = there && is_inside(rows[i], cursor);
                next_a[i * kGroups + g] = uvec4(padding);
                if (inside) next_a[i * kGroups + g] = x8[rows[i].first / 2 + from];
            }
            advance(cursor, step, groups);
        } else {
            Cursor second = cursor;
            advance(second, 1, groups);
            [[unroll]] for (uint i = 0; i < kLoadsA; i++)
                next_a[i * kGroups + g] =
                    uvec4(load4(rows[i], cursor, group), load4(rows[i], second, group));
            advance(cursor, 2 * step, groups);
        }
    }
#endif
    const bool weights = kTileK <= 64 || k16 < weight_groups();
    [[unroll]] for (uint i = 0; i < kLoadsB; i++)
        next_b[i] = weights ? weight8[columns[i] + k16] : uvec4(0);
}

void store_part(uint part) {
    const int group = matrix_group(), vectors = (channels + 3) / 4;
    const int m0 = int(gl_WorkGroupID.x * kTileM), first_c = int(gl_WorkGroupID.y * kTileN / 4);
    vec4 sum = vec4(0.0);
    [[dont_unroll]] for (uint first = 0; first < kMade; first += kFew) {
        take_made(part, first);
        [[unroll]] for (uint e = 0; e < kFew; e++) {
            const uint i = (first + e) * kThreads + gl_LocalInvocationID.x;
            const int pixel = m0 + int(made_row(part, i)), c = first_c + int(i % (kTileN / 4));
            if (i >= kSize || pixel >= y_pixels || c >= vectors) continue;
            const int all_c = group * vectors + c;
            sum += store_output(pixel, c, all_c, biased(vec4(made[e]), all_c));
        }
    }
#ifdef SUMS
    if (kSums) store_pixel_sums(sum, kTileN / 4, kThreads, first_c, vectors);
#endif
}

void main() {
    const uint thread = gl_LocalInvocationID.x, down = first_down();
    const int m0 = int(gl_WorkGroupID.x * kTileM), n0 = int(gl_WorkGroupID.y * kTileN);
    const int group = matrix_group(), groups = weight_groups();
#ifdef PLANAR
    [[unroll]] for (uint i = 0; i < kLoadsA; i++)
        rows[i] = planar_row_of(min(m0 + int(down + i * kDown), y_pixels - 1));
#else
    [[unroll]] for (uint i = 0; i < kLoadsA; i++)
        rows[i] = row_of(min(m0 + int(down + i * kDown), y_pixels - 1));
    if (kGate == 2)
        [[unroll]] for (uint i = 0; i < kLoadsA; i++)
            gates[i] = rows[i].window.x / (y_w * y_h * y_d) * x_c;
#endif
    [[unroll]] for (uint i = 0; i < kLoadsB; i++)
        columns[i] = (group * channels + min(n0 + int(down + i * kDown), channels - 1)) * groups;
#ifndef PLANAR
    const int step = split_range((groups + int(kAcross) - 1) / int(kAcross)).x;
    const int first = (step * int(kAcross) + int(thread % kAcross)) * int(kGroups);
    cursor = cursor_at(kWide ? first : 2 * first, tap_groups());
#endif
    if (!make_tile(groups)) return;
    store_tile();
}
