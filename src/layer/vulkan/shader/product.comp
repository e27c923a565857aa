// y = f(alpha A B + beta C + bias) for matrices of any strides, several of them: a group of 64
// makes a tile of 8 kRows x 32 kColumns, a step of 16 of the depth at a time, both factors in
// shared memory. HALVES: common/halves.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "halves.glsl"
#include "storage.glsl"
#include "math.glsl"
#include "activation.glsl"

layout(constant_id = 0) const bool kAddend = false;
layout(constant_id = 1) const int kActivation = 0;
layout(constant_id = 2) const bool kBias = false;
// Whether values side by side along the depth come in vec4s.
layout(constant_id = 3) const bool kLeftVectors = false;
layout(constant_id = 4) const bool kRightVectors = false;
layout(constant_id = 5) const int kRows = 4;     // of an invocation
layout(constant_id = 6) const int kColumns = 1;  // and vec4s of columns
layout(local_size_x = 8, local_size_y = 8) in;
READS(0, Left, left);
READS4(0, Left4, left4);  // the same
READS(1, Right, right);
READS4(1, Right4, right4);
READS(2, Addend, addend);
WRITES(3, Output, y);
layout(set = 0, binding = 4) readonly buffer Bias { float bias[]; };  // of a column
// Steps from row to row, from column to column, and from matrix to matrix along two axes.
struct Matrix {
    int first, row, column, c, d;
};
layout(push_constant) uniform Push {
    int rows, columns, depth, matrices_d;
    Matrix a, b, c, made;
    float alpha, beta, f_a, f_b;
    int splits;
};
#include "split.glsl"

const int kTileM = 8 * kRows, kVectors = 8 * kColumns, kDepth = 4;  // depth in vec4s
shared FACTOR4 a_tile[kDepth][kTileM + 1];
shared FACTOR4 b_tile[kDepth * 4][kVectors + 1];
const int kMade = kTileM * kVectors;
shared vec4 tile_sums[kMade];
// Of vec4s along the depth an invocation loads those of rows and columns local() + 16 i.
const int kLoadsA = kTileM / 16, kLoadsB = kVectors * 4 / 16;
FACTOR4 next_a[kLoadsA], next_b[kLoadsB];
int lefts[kLoadsA], rights[kLoadsB];

int origin(Matrix m) {
    const int z = int(gl_WorkGroupID.z) / splits;
    return m.first + z / matrices_d * m.c + z % matrices_d * m.d;
}

#define LOAD4(name, name4, whole, from, step)                        \
    FACTOR4 v = FACTOR4(0.0);                                        \
    if (whole) {                                                     \
        if (k < depth) v = FACTOR4(name4[((from) + k) / 4]);         \
    } else {                                                         \
        [[unroll]] for (int j = 0; j < 4; j++)                       \
            if (k + j < depth) v[j] = FACTOR(name[(from) + (k + j) * (step)]); \
    }                                                                \
    return v
FACTOR4 left_at(int from, int k) { LOAD4(left, left4, kLeftVectors, from, a.column); }
FACTOR4 right_at(int from, int k) { LOAD4(right, right4, kRightVectors, from, b.row); }

void load_step(int step) {
    const int k = (step * kDepth + int(gl_LocalInvocationIndex & 3u)) * 4;
    [[unroll]] for (int i = 0; i < kLoadsA; i++) next_a[i] = left_at(lefts[i], k);
    [[unroll]] for (int i = 0; i < kLoadsB; i++) next_b[i] = right_at(rights[i], k);
}

void main() {
    const int m0 = int(gl_WorkGroupID.y) * kTileM, n0 = int(gl_WorkGroupID.x) * kVectors * 4;
    const int tx = int(gl_LocalInvocationID.x), ty = int(gl_LocalInvocationID.y);
    const int part = int(gl_LocalInvocationIndex & 3u), local = int(gl_LocalInvocationIndex >> 2);
    [[unroll]] for (int i = 0; i < kLoadsA; i++)
        lefts[i] = origin(a) + min(m0 + local + 16 * i, rows - 1) * a.row;
    [[unroll]] for (int i = 0; i < kLoadsB; i++)
        rights[i] = origin(b) + min(n0 + local + 16 * i, columns - 1) * b.column;

    vec4 sums[kRows * kColumns];
    [[unroll]] for (int i = 0; i < kRows * kColumns; i++) sums[i] = vec4(0.0);
    const ivec2 range = split_range((depth + 4 * kDepth - 1) / (4 * kDepth));
    if (range.x < range.y) load_step(range.x);
    for (int step = range.x; step < range.y; step++) {
        [[unroll]] for (int i = 0; i < kLoadsA; i++) a_tile[part][local + 16 * i] = next_a[i];
        [[unroll]] for (int i = 0; i < kLoadsB; i++)
            [[unroll]] for (int j = 0; j < 4; j++)
                b_tile[4 * part + j][(local + 16 * i) / 4][local & 3] = next_b[i][j];
        barrier();
        if (step + 1 < range.y) load_step(step + 1);
#ifdef HALVES
        f16vec4 step_sums[kRows * kColumns];
        [[unroll]] for (int i = 0; i < kRows * kColumns; i++) step_sums[i] = f16vec4(0.0);
#define SUMS step_sums
#else
#define SUMS sums
#endif
        for (int k = 0; k < kDepth; k++) {
            FACTOR4 v[kRows];
            [[unroll]] for (int i = 0; i < kRows; i++) v[i] = a_tile[k][ty + 8 * i];
            [[unroll]] for (int j = 0; j < kColumns; j++) {
                const FACTOR4 w0 = b_tile[4 * k][tx + 8 * j], w1 = b_tile[4 * k + 1][tx + 8 * j];
                const FACTOR4 w2 = b_tile[4 * k + 2][tx + 8 * j], w3 = b_tile[4 * k + 3][tx + 8 * j];
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

    const int tile = split_tile(), to_part = (tile * splits + split_index()) * kMade;
    [[unroll]] for (int i = 0; i < kRows; i++)
        [[unroll]] for (int j = 0; j < kColumns; j++) {
            const int at = (ty + 8 * i) * kVectors + tx + 8 * j;
            if (splits > 1)
                parts[to_part + at] = sums[i * kColumns + j];
            else
                tile_sums[at] = sums[i * kColumns + j];
        }
    if (splits > 1 && !split_arrive(tile)) return;
    barrier();
    // One after the other, since the code for a value may be long.
    const int to = origin(made), added = origin(c);
    [[dont_unroll]] for (int i = int(gl_LocalInvocationIndex); i < kMade; i += 64) {
        const int row = m0 + i / kVectors;
        if (row >= rows) break;
        const vec4 sum = splits > 1 ? split_sum(tile, kMade, i) : tile_sums[i];
        [[dont_unroll]] for (int lane = 0; lane < 4; lane++) {
            const int column = n0 + i % kVectors * 4 + lane;
            if (column >= columns) break;
            float v = alpha * sum[lane];
            if (kAddend) v += beta * float(addend[added + row * c.row + column * c.column]);
            if (kBias) v += bias[column];
            y[to + row * made.row + column * made.column] =
                STORED(activated(v, kActivation, f_a, f_b));
        }
    }
}
