// Convolution as a product of matrices for devices whose invocations are the lanes of a processor's
// vectors: a subgroup of 8 computes 32 pixels of 16 channels without shared memory, which is
// memory like any other there, and without barriers. Lanes hold pixels; each loads a part of the
// weights, which all take from its lane, since a load takes as long as 8 loads of one lane.
// weight: [group][steps][4][output vec4s]. PLANAR: of planar inputs (common/planar.glsl).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "halves.glsl"
#include "storage.glsl"
#include "pairs.glsl"
#include "math.glsl"
#include "activation.glsl"
#include "conv.glsl"
#include "planar.glsl"

// Inputs are multiplied by a factor of their channel.
layout(constant_id = 6) const bool kGate = false;
READS4(7, Gate, gate);
layout(local_size_x = 8) in;

const int kRows = 4, kColumns = 4;  // pixels and vec4s of channels of an invocation
vec4 sums[kRows * kColumns];
Row rows[kRows];
int group, vectors, first_vector;

// Adds the products of inputs with four rows of the weights, to vec4s j of the sums.
void add_column(int j, vec4 w0, vec4 w1, vec4 w2, vec4 w3, vec4 v[kRows]) {
    [[unroll]] for (int i = 0; i < kRows; i++) {
        ADD_PRODUCTS(sums[i * kColumns + j], v[i]);
    }
}

// The same with all weights of a step.
void add_products(int step, vec4 v[kRows]) {
    const int lane = int(gl_LocalInvocationIndex);
    const int column = min(first_vector + (lane & 3), vectors - 1);
    const int row = (group * steps + step) * 4 + (lane >> 2);
    const vec4 low = vec4(weight[row * vectors + column]);
    const vec4 high = vec4(weight[(row + 2) * vectors + column]);
#define COLUMN(j)                                                                    \
    add_column(j, subgroupBroadcast(low, j), subgroupBroadcast(low, 4 + j),          \
               subgroupBroadcast(high, j), subgroupBroadcast(high, 4 + j), v)
    COLUMN(0);
    COLUMN(1);
    COLUMN(2);
    COLUMN(3);
}

#ifdef PLANAR
void add_windows() {
    for (int step = 0; step < steps; step++) {
        const Group at = group_at(step);
        vec4 v[kRows];
        [[unroll]] for (int i = 0; i < kRows; i++) v[i] = planar4(rows[i], at);
        add_products(step, v);
    }
}
#else
void add_windows() {
    int step = 0;
    Cursor tap = Cursor(0, 0, 0, 0);
    for (tap.kz = 0; tap.kz < kernel_d; tap.kz++)
        for (tap.ky = 0; tap.ky < kernel_h; tap.ky++)
            for (tap.kx = 0; tap.kx < kernel_w; tap.kx++) {
                bool within[kRows];
                int from[kRows];
                [[unroll]] for (int i = 0; i < kRows; i++) {
                    within[i] = is_inside(rows[i], tap);
                    from[i] = within[i] ? rows[i].first + offset_of(tap) + group * x_c : 0;
                }
                for (int c = 0; c < x_c; c++, step++) {
                    vec4 v[kRows];
                    [[unroll]] for (int i = 0; i < kRows; i++) {
                        v[i] = within[i] ? arrived(vec4(x[from[i] + c])) : vec4(pad_value);
                        if (kGate) v[i] *= vec4(gate[c]);
                    }
                    add_products(step, v);
                }
            }
}
#endif

void main() {
    group = int(gl_WorkGroupID.z), vectors = (channels + 3) / 4;
    first_vector = int(gl_WorkGroupID.y) * kColumns;
    const int first_pixel = int(gl_WorkGroupID.x) * 8 * kRows + int(gl_LocalInvocationIndex);
    [[unroll]] for (int i = 0; i < kRows; i++)
#ifdef PLANAR
        rows[i] = planar_row_of(min(first_pixel + 8 * i, y_pixels - 1));
#else
        rows[i] = row_of(min(first_pixel + 8 * i, y_pixels - 1));
#endif
    [[unroll]] for (int i = 0; i < kRows * kColumns; i++) sums[i] = vec4(0.0);
    add_windows();
    for (int j = 0; j < kColumns; j++) {
        const int c = first_vector + j, all_c = group * vectors + c;
        if (c >= vectors) break;
        [[unroll]] for (int i = 0; i < kRows; i++) {
            const int pixel = first_pixel + 8 * i;
            if (pixel < y_pixels)
                store_output(pixel, c, all_c, biased(sums[i * kColumns + j], all_c));
        }
    }
}
