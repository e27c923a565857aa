// Convolution as a product of matrices: a group of 64 computes 8 kRows pixels of 32 kColumns
// channels, a step of 16 input channels of a tap at a time, both operands in shared memory. weight:
// [group][steps][4][output vec4s]. PLANAR: of planar inputs (common/planar.glsl). HALVES:
// common/halves.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "halves.glsl"
#include "storage.glsl"
#include "pairs.glsl"
#include "math.glsl"
#include "activation.glsl"
#include "conv.glsl"
#include "split.glsl"
#include "planar.glsl"

layout(constant_id = 4) const int kRows = 4;     // pixels of an invocation
layout(constant_id = 5) const int kColumns = 1;  // and vec4s of channels
layout(constant_id = 6) const bool kGate = false;  // inputs are multiplied by a factor of their channel
READS4(7, Gate, gate);
layout(local_size_x = 8, local_size_y = 8) in;

const int kPixels = 8 * kRows, kVectors = 8 * kColumns, kDepth = 4;  // of a tile; inputs in vec4s
shared FACTOR4 inputs[kDepth][kPixels + 1];
shared FACTOR4 weights[kDepth * 4][kVectors];

const int kLoadsA = kPixels * kDepth / 64, kLoadsB = kVectors * kDepth * 4 / 64;
Row rows[kLoadsA];
Cursor cursor;
FACTOR4 next_a[kLoadsA], next_b[kLoadsB];

void load_step(int step, int group, int vectors, int first_vector) {
    const int thread = int(gl_LocalInvocationIndex);
#ifdef PLANAR
    const Group at = group_at(step * kDepth + (thread & 3));
    [[unroll]] for (int i = 0; i < kLoadsA; i++) next_a[i] = FACTOR4(planar4(rows[i], at));
#else
    const bool there = is_before_end(cursor, x_c);
    const int from = offset_of(cursor) + group * x_c + cursor.c;
    [[unroll]] for (int i = 0; i < kLoadsA; i++) {
        next_a[i] = FACTOR4(is_inside(rows[i], cursor) || !there ? 0.0 : pad_value);
        if (there && is_inside(rows[i], cursor)) next_a[i] = ARRIVED(x[rows[i].first + from]);
        if (kGate && there) next_a[i] *= FACTOR4(gate[cursor.c]);
    }
    advance(cursor, kDepth, x_c);
#endif
    const int column = min(first_vector + thread % kVectors, vectors - 1);
    [[unroll]] for (int i = 0; i < kLoadsB; i++) {
        const int row = step * kDepth * 4 + thread / kVectors + i * (64 / kVectors);
        next_b[i] = row < steps * 4 ? FACTOR4(weight[(group * steps * 4 + row) * vectors + column])
                                    : FACTOR4(0.0);
    }
}

void main() {
    const int group = int(gl_WorkGroupID.z) / splits, vectors = (channels + 3) / 4;
    const int thread = int(gl_LocalInvocationIndex);
    const int tx = int(gl_LocalInvocationID.x), ty = int(gl_LocalInvocationID.y);
    const int first_pixel = int(gl_WorkGroupID.x) * kPixels;
    const int first_vector = int(gl_WorkGroupID.y) * kVectors;
    [[unroll]] for (int i = 0; i < kLoadsA; i++)
#ifdef PLANAR
        rows[i] = planar_row_of(min(first_pixel + (thread >> 2) + 16 * i, y_pixels - 1));
#else
        rows[i] = row_of(min(first_pixel + (thread >> 2) + 16 * i, y_pixels - 1));
#endif

    vec4 sums[kRows * kColumns];
    [[unroll]] for (int i = 0; i < kRows * kColumns; i++) sums[i] = vec4(0.0);
    const ivec2 range = split_range((steps + kDepth - 1) / kDepth);
    cursor = cursor_at(range.x * kDepth + (thread & 3), x_c);
    if (range.x < range.y) load_step(range.x, group, vectors, first_vector);
    for (int step = range.x; step < range.y; step++) {
        [[unroll]] for (int i = 0; i < kLoadsA; i++)
            inputs[thread & 3][(thread >> 2) + 16 * i] = next_a[i];
        [[unroll]] for (int i = 0; i < kLoadsB; i++)
            weights[thread / kVectors + i * (64 / kVectors)][thread % kVectors] = next_b[i];
        barrier();
        if (step + 1 < range.y) load_step(step + 1, group, vectors, first_vector);
#ifdef HALVES
        f16vec4 step_sums[kRows * kColumns];
        [[unroll]] for (int i = 0; i < kRows * kColumns; i++) step_sums[i] = f16vec4(0.0);
#define SUMS step_sums
#else
#define SUMS sums
#endif
        for (int k = 0; k < kDepth; k++) {
            FACTOR4 v[kRows];
            [[unroll]] for (int i = 0; i < kRows; i++) v[i] = inputs[k][ty + 8 * i];
            [[unroll]] for (int j = 0; j < kColumns; j++) {
                const FACTOR4 w0 = weights[4 * k][tx + 8 * j], w1 = weights[4 * k + 1][tx + 8 * j];
                const FACTOR4 w2 = weights[4 * k + 2][tx + 8 * j], w3 = weights[4 * k + 3][tx + 8 * j];
                [[unroll]] for (int i = 0; i < kRows; i++) {
                    ADD_PRODUCTS(SUMS[i * kColumns + j], v[i]);
                }
            }
        }
#ifdef HALVES
        [[unroll]] for (int i = 0; i < kRows * kColumns; i++) sums[i] += vec4(step_sums[i]);
#endif
        barrier();
    }

    const int tile = split_tile(), size = kRows * kColumns * 64;
    if (splits > 1) {
        const int to = (tile * splits + split_index()) * size + thread;
        [[unroll]] for (int i = 0; i < kRows * kColumns; i++) parts[to + i * 64] = sums[i];
        if (!split_arrive(tile)) return;
        [[unroll]] for (int i = 0; i < kRows * kColumns; i++)
            sums[i] = split_sum(tile, size, i * 64 + thread);
    }
    [[unroll]] for (int i = 0; i < kRows; i++) {
        [[unroll]] for (int j = 0; j < kColumns; j++) {
            const int pixel = first_pixel + ty + 8 * i, c = first_vector + tx + 8 * j;
            if (pixel >= y_pixels || c >= vectors) continue;
            const int all_c = group * vectors + c;
            store_output(pixel, c, all_c, biased(sums[i * kColumns + j], all_c));
        }
    }
}
