// softmax(q k^T scale + mask) v of few queries: a group for each query of a head of an item, as
// attention.comp, with as many keys at a time as it has invocations. Rows of keys and values are
// whole vec4s; a vec4 of the output is made by several invocations, each of which takes some keys.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"
#include "storage.glsl"

layout(constant_id = 0) const int kMask = 0;  // mask.glsl
layout(constant_id = 1) const int kThreads = 64;
layout(local_size_x_id = 1) in;
READS(0, Queries, q);
READS(3, Masks, masks);
WRITES(4, Output, y);
READS(5, Columns, columns);
READS4(1, Keys, k);
READS4(2, Values, v);
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
int origin(Matrix m, int head) { return m.first + int(gl_WorkGroupID.z) * m.item + head * m.head; }
shared float query[512], scores[kThreads], parts[kThreads];
shared vec4 outputs[kThreads];

float larger(float a, float b) { return is_nan(a) || a > b ? a : b; }

float reduced(float value, bool sum) {
    const uint thread = gl_LocalInvocationID.x;
    barrier();
    parts[thread] = value;
    barrier();
    // In two steps of 16, since barriers take longer than the work between them.
    float made = value;
    if (thread < 16u) {
        for (uint i = thread + 16u; i < kThreads; i += 16u)
            made = sum ? made + parts[i] : larger(made, parts[i]);
        parts[thread] = made;
    }
    barrier();
    made = parts[0];
    for (uint i = 1u; i < 16u; i++) made = sum ? made + parts[i] : larger(made, parts[i]);
    return made;
}

float score_of(int from4) {
    vec4 sums = vec4(0.0);
    for (int l = 0; l < size / 4; l++)
        sums += vec4(query[4 * l], query[4 * l + 1], query[4 * l + 2], query[4 * l + 3]) *
                vec4(k[from4 + l]);
    return ((sums.x + sums.y) + (sums.z + sums.w)) * scale;
}

void main() {
    const int thread = int(gl_LocalInvocationID.x);
    const int row = int(gl_WorkGroupID.x), head = int(gl_WorkGroupID.y);
    const int from_q = origin(q_, head) + row * q_.row, from_k = origin(k_, head / heads_per_group);
    const int from_v = origin(v_, head / heads_per_group);
    const int from_mask = mask_row(head, row);
    const int old = keys;
    const int lanes = out_size / 4, groups = kThreads / lanes;
    const int lane = thread % lanes, group = thread / lanes;
    const int begin = 0, end = keys;
    for (int l = thread; l < size; l += kThreads) query[l] = float(q[from_q + l * q_.column]);
    barrier();
    float most = -kInfinity, sum = 0.0;
    vec4 made = vec4(0.0);
    for (int first = begin; first < end; first += kThreads) {
        const int j = first + thread, count = min(kThreads, end - first);
        float score = -kInfinity;
        if (j < min(old, end)) score = score_of((from_k + j * k_.row) / 4);
        if (kMask != 0 && j < end) score += mask_of(from_mask, j);
        const float now = larger(most, reduced(score, false));
        const bool nothing = now == -kInfinity;
        const float kept = nothing ? 0.0 : exact_exp(most - now);
        const float weight = nothing || j >= end ? 0.0 : exact_exp(score - now);
        scores[thread] = weight;
        sum = sum * kept + reduced(weight, true);  // its barriers are those of `scores` too
        vec4 added = vec4(0.0);
        const int from4 = (from_v + first * v_.row) / 4 + lane;
        if (group < groups)
            for (int i = group; i < min(count, old - first); i += groups)
                added += scores[i] * vec4(v[from4 + i * v_.row / 4]);
        made = made * kept + added;
        most = now;
        barrier();
    }
    outputs[thread] = made;
    barrier();
    if (thread < lanes)
        for (int g = 1; g < groups; g++) made += outputs[g * lanes + thread];
    if (thread >= lanes) return;
    if (most == -kInfinity)
        made = vec4(0.0);
    else
        made /= sum;
    const int to = origin(y_, head) + row * y_.row + 4 * thread * y_.column, step = y_.column;
    for (int i = 0; i < 4; i++) y[to + i * step] = STORED(made[i]);
}
