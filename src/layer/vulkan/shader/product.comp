// y = f(alpha A B + beta C + bias) for matrices of any strides, several of them: a group makes a tile
// of 32 x 32, each invocation four rows and four columns of it.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"
#include "activation.glsl"

layout(constant_id = 0) const bool kAddend = false;
layout(constant_id = 1) const int kActivation = 0;
layout(constant_id = 2) const bool kBias = false;
layout(local_size_x = 8, local_size_y = 8) in;
READS(0, Left, left);
READS(1, Right, right);
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
};
const int kTile = 32, kDepth = 16;
shared float a_tile[kDepth][kTile + 1], b_tile[kDepth][kTile + 1];

int origin(Matrix m, int z) { return m.first + z / matrices_d * m.c + z % matrices_d * m.d; }

void load_tiles(int first_row, int first_column, int first_depth, int z) {
    const int thread = int(gl_LocalInvocationIndex), from_a = origin(a, z), from_b = origin(b, z);
    for (int i = thread; i < kTile * kDepth; i += 64) {
        // Neighbours in memory go to neighbours among the invocations.
        const bool along = a.column == 1;
        const ivec2 at = along ? ivec2(i / kDepth, i % kDepth) : ivec2(i % kTile, i / kTile);
        const int row = first_row + at.x, k = first_depth + at.y;
        const bool there = row < rows && k < depth;
        a_tile[at.y][at.x] = there ? float(left[from_a + row * a.row + k * a.column]) : 0.0;
    }
    for (int i = thread; i < kTile * kDepth; i += 64) {
        const ivec2 at = b.row == 1 ? ivec2(i / kDepth, i % kDepth) : ivec2(i % kTile, i / kTile);
        const int column = first_column + at.x, k = first_depth + at.y;
        const bool there = column < columns && k < depth;
        b_tile[at.y][at.x] = there ? float(right[from_b + k * b.row + column * b.column]) : 0.0;
    }
}

void main() {
    const int first_column = int(gl_WorkGroupID.x) * kTile;
    const int first_row = int(gl_WorkGroupID.y) * kTile;
    const int z = int(gl_WorkGroupID.z);
    const int tx = int(gl_LocalInvocationID.x), ty = int(gl_LocalInvocationID.y);
    float sums[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sums[i][j] = 0.0;
    for (int first = 0; first < depth; first += kDepth) {
        load_tiles(first_row, first_column, first, z);
        barrier();
        // No more than there are: 0 times infinity is not 0.
        const int count = min(kDepth, depth - first);
        for (int k = 0; k < count; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sums[i][j] += a_tile[k][ty + 8 * i] * b_tile[k][tx + 8 * j];
        barrier();
    }
    const int to = origin(made, z), added = origin(c, z);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            const int row = first_row + ty + 8 * i, column = first_column + tx + 8 * j;
            if (row >= rows || column >= columns) continue;
            float v = alpha * sums[i][j];
            if (kAddend) v += beta * float(addend[added + row * c.row + column * c.column]);
            if (kBias) v += bias[column];
            y[to + row * made.row + column * made.column] =
                STORED(activated(v, kActivation, f_a, f_b));
        }
    }
}
