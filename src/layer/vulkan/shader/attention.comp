// softmax(q k^T scale + mask) v: a group of 64 for each query of a head of an item goes through the
// keys, 64 at a time, and keeps the largest score and the sums so far.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kMask = 0;  // mask.glsl
layout(constant_id = 1) const int kParts = 1;  // values of an output, in 64s
layout(constant_id = 2) const bool kKept = true;  // whether `query` has room for a query
layout(local_size_x = 64) in;
READS(0, Queries, q);
READS(1, Keys, k);
READS(2, Values, v);
READS(3, Masks, masks);
WRITES(4, Output, y);
READS(5, Columns, columns);
// Steps from row to row, from value to value, from head to head, from item to item.
struct Matrix {
    int first, row, column, head, item;
};
layout(push_constant) uniform Push {
    int queries, keys, size, out_size, heads_per_group;
    Matrix q_, k_, v_, y_, mask_;
    float scale;
    int columns_first;
};
#include "mask.glsl"
shared float query[512], scores[64], parts[64];

int origin(Matrix m, int head) { return m.first + int(gl_WorkGroupID.z) * m.item + head * m.head; }

float larger(float a, float b) { return is_nan(a) || a > b ? a : b; }

float reduced(float value, bool sum) {
    const uint thread = gl_LocalInvocationID.x;
    barrier();
    parts[thread] = value;
    barrier();
    for (uint n = 32u; n > 0u; n /= 2u) {
        if (thread < n)
            parts[thread] = sum ? parts[thread] + parts[thread + n]
                                : larger(parts[thread], parts[thread + n]);
        barrier();
    }
    return parts[0];
}

void main() {
    const int thread = int(gl_LocalInvocationID.x);
    const int row = int(gl_WorkGroupID.x), head = int(gl_WorkGroupID.y);
    const int group = head / heads_per_group;
    const int from_q = origin(q_, head) + row * q_.row, from_k = origin(k_, group);
    const int from_v = origin(v_, group), from_mask = mask_row(head, row);
    if (kKept)
        for (int l = thread; l < size; l += 64) query[l] = float(q[from_q + l * q_.column]);
    barrier();
    float most = -kInfinity, sum = 0.0, made[kParts];
    for (int p = 0; p < kParts; p++) made[p] = 0.0;
    for (int first = 0; first < keys; first += 64) {
        const int j = first + thread, count = min(64, keys - first);
        float score = -kInfinity;
        if (j < keys) {
            const int from = from_k + j * k_.row;
            float product = 0.0;
            for (int l = 0; l < size; l++) {
                const float value = kKept ? query[l] : float(q[from_q + l * q_.column]);
                product += value * float(k[from + l * k_.column]);
            }
            score = product * scale;
            if (kMask != 0) score += mask_of(from_mask, j);
        }
        const float now = larger(most, reduced(score, false));
        const bool nothing = now == -kInfinity;
        const float kept = nothing ? 0.0 : exact_exp(most - now);
        const float weight = nothing || j >= keys ? 0.0 : exact_exp(score - now);
        scores[thread] = weight;
        sum = sum * kept + reduced(weight, true);  // its barriers are those of `scores` too
        for (int p = 0; p < kParts; p++) {
            const int c = p * 64 + thread;
            if (c >= out_size) continue;
            const int from = from_v + first * v_.row + c * v_.column;
            float added = 0.0;
            for (int i = 0; i < count; i++) added += scores[i] * float(v[from + i * v_.row]);
            made[p] = made[p] * kept + added;
        }
        most = now;
        barrier();
    }
    for (int p = 0; p < kParts; p++) {
        const int c = p * 64 + thread;
        if (c < out_size)
            y[origin(y_, head) + row * y_.row + c * y_.column] =
                STORED(most == -kInfinity ? 0.0 : made[p] / sum);
    }
}
