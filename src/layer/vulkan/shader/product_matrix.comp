// y = f(alpha A B + beta C + bias) on matrix units (VK_KHR_cooperative_matrix), for matrices of any
// strides, several of them: f16 factors, f32 sums.
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

layout(constant_id = 0) const bool kAddend = false;
layout(constant_id = 1) const int kActivation = 0;
layout(constant_id = 2) const bool kBias = false;
// Whether values side by side along the depth come in vec4s.
layout(constant_id = 3) const bool kLeftVectors = false;
layout(constant_id = 4) const bool kRightVectors = false;
// The same for eights.
layout(constant_id = 16) const bool kLeftEights = false;
layout(constant_id = 17) const bool kRightEights = false;
// Whether those of y and C side by side along the columns come in vec4s.
layout(constant_id = 18) const bool kOutVectors = false;
READS(0, Left, left);
READS4(0, Left4, left4);  // the same
READS(1, Right, right);
READS4(1, Right4, right4);
layout(set = 0, binding = 0) readonly buffer Left8 { uvec4 left_eights[]; };
layout(set = 0, binding = 1) readonly buffer Right8 { uvec4 right_eights[]; };
READS(2, Addend, addend);
READS4(2, Addend4, addend4);
WRITES(3, Output, y);
WRITES4(3, Output4, y4);
layout(set = 0, binding = 4) readonly buffer Bias { float bias[]; };  // of a column
// Steps from row to row, from column to column, and from matrix to matrix along two axes.
struct Matrix {
    int first, row, column, c, d;
};
layout(push_constant) uniform Push {
    int rows, columns, depth, matrices_d;
    Matrix a, b, c, made_steps;
    float alpha, beta, f_a, f_b;
    int splits;
};
#include "split.glsl"
#include "matrix.glsl"

int lefts[kLoadsA], rights[kLoadsB];

int origin(Matrix m) {
    const int z = int(split_group());
    return m.first + z / matrices_d * m.c + z % matrices_d * m.d;
}

uint pack(vec2 v) { return packed2(v); }

// Eight values along the depth from index k on; `step`: from one to the next.
#define LOAD8(name, name4, whole, from, step)                                                  \
    vec4 low = vec4(0.0), high = vec4(0.0);                                                    \
    if (whole) {                                                                               \
        if (k < depth) low = vec4(name4[((from) + k) / 4]);                                    \
        if (k + 4 < depth) high = vec4(name4[((from) + k) / 4 + 1]);                           \
    } else {                                                                                   \
        [[unroll]] for (int i = 0; i < 4; i++) {                                               \
            if (k + i < depth) low[i] = float(name[(from) + (k + i) * (step)]);                \
            if (k + 4 + i < depth) high[i] = float(name[(from) + (k + 4 + i) * (step)]);       \
        }                                                                                      \
    }                                                                                          \
    return uvec4(pack(low.xy), pack(low.zw), pack(high.xy), pack(high.zw))

// `from` in eights where they come so.
uvec4 left8(int from, int k) {
    if (kLeftEights) return k < depth ? left_eights[uint(from) + (uint(k) >> 3)] : uvec4(0);
    LOAD8(left, left4, kLeftVectors, from, a.column);
}
uvec4 right8(int from, int k) {
    if (kRightEights) return k < depth ? right_eights[uint(from) + (uint(k) >> 3)] : uvec4(0);
    LOAD8(right, right4, kRightVectors, from, b.row);
}

void load_step(int k8) {
    [[unroll]] for (uint i = 0; i < kLoadsA; i++) next_a[i] = left8(lefts[i], 8 * k8);
    [[unroll]] for (uint i = 0; i < kLoadsB; i++) next_b[i] = right8(rights[i], 8 * k8);
}

uvec4 arrived_a(uint i) { return next_a[i]; }

// Four values of a row; to, added: where the row begins in y and in C.
void store4(vec4 v, int to, int added, int column) {
    if (column >= columns) return;
    v *= alpha;
    if (kAddend) v += beta * vec4(addend4[(added + column) / 4]);
    if (kBias) v += vec4(bias[column], bias[column + 1], bias[column + 2], bias[column + 3]);
    y4[(to + column) / 4] = STORED4(activated4(v, kActivation, f_a, f_b));
}
void store_each(vec4 sum, int to, int added, int first) {
    for (int lane = 0; lane < 4; lane++) {
        const int column = first + lane;
        if (column >= columns) continue;
        float v = alpha * sum[lane];
        if (kAddend) v += beta * float(addend[added + column * c.column]);
        if (kBias) v += bias[column];
        y[to + column * made_steps.column] = STORED(activated(v, kActivation, f_a, f_b));
    }
}

void store_part(uint part) {
    const int m0 = int(gl_WorkGroupID.y * kTileM), n0 = int(gl_WorkGroupID.x * kTileN);
    const int to = origin(made_steps), added = origin(c);
    [[dont_unroll]] for (uint first = 0; first < kMade; first += kFew) {
        take_made(part, first);
        [[unroll]] for (uint e = 0; e < kFew; e++) {
            const uint i = (first + e) * kThreads + gl_LocalInvocationID.x;
            const int row = m0 + int(made_row(part, i));
            if (i >= kSize || row >= rows) continue;
            const int column = n0 + int(i % (kTileN / 4)) * 4;
            if (kOutVectors)
                store4(made[e], to + row * made_steps.row, added + row * c.row, column);
            else
                store_each(made[e], to + row * made_steps.row, added + row * c.row, column);
        }
    }
}

void main() {
    const uint down = first_down();
    const int m0 = int(gl_WorkGroupID.y * kTileM), n0 = int(gl_WorkGroupID.x * kTileN);
    [[unroll]] for (uint i = 0; i < kLoadsA; i++) {
        lefts[i] = origin(a) + min(m0 + int(down + i * kDown), rows - 1) * a.row;
        if (kLeftEights) lefts[i] /= 8;
    }
    [[unroll]] for (uint i = 0; i < kLoadsB; i++) {
        rights[i] = origin(b) + min(n0 + int(down + i * kDown), columns - 1) * b.column;
        if (kRightEights) rights[i] /= 8;
    }
    if (!make_tile((depth + 7) / 8)) return;
    store_tile();
}
