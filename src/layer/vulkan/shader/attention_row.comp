// softmax(q k^T scale + mask) v of few queries: a group for each query of a head of an item, as
// attention.comp, with as many keys at a time as it has invocations. Rows of keys and values are
// whole vec4s; a vec4 of the output is made by several invocations, each of which takes some keys.
// STEP: of one query, whose own key and value are not in the caches yet. Query and key are turned by
// their angles first (rotary.comp), and key and value put behind the others. Of many keys a group has
// `span`: it stores what it made of them, and the last one to arrive joins what all have made.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"

layout(constant_id = 0) const bool kMask = false;
layout(constant_id = 1) const int kThreads = 64;
layout(local_size_x_id = 1) in;
READS(0, Queries, q);
READS(3, Masks, masks);
WRITES(4, Output, y);
#ifdef STEP
layout(set = 0, binding = 1) buffer Keys { VECTOR k[]; };
layout(set = 0, binding = 1) buffer KeyScalars { SCALAR k_scalars[]; };  // the same
layout(set = 0, binding = 2) buffer Values { VECTOR v[]; };
READS(5, NewKeys, new_keys);
READS4(6, NewValues, new_values);
READS(7, Cosines, cosines);
READS(8, Sines, sines);
struct Cache {
    int first, row, head;  // steps
    int repeats;           // heads that have the same new row
    int new_first;
};
layout(push_constant) uniform Push {
    int keys, size, out_size, heads_per_group;
    int q_first, y_first, mask_first, mask_head;
    Cache k_, v_;
    int cosines_first, sines_first;
    // As rotary.comp's.
    int pair, partner, second;
    float scale;
    int span;
};
shared float new_key[512];
// Of [head][group] the values, then the largest score and the sum of the weights.
layout(set = 0, binding = 9) coherent buffer Parts { vec4 kept_parts[]; };
layout(set = 0, binding = 10) coherent buffer Counters { uint counters[]; };
shared bool is_last;
#else
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
};
int origin(Matrix m, int head) { return m.first + int(gl_WorkGroupID.z) * m.item + head * m.head; }
#endif
shared float query[512], scores[kThreads], parts[kThreads];
shared vec4 outputs[kThreads];

float larger(float a, float b) { return is_nan(a) || a > b ? a : b; }

float reduced(float value, bool sum) {
    const uint thread = gl_LocalInvocationID.x;
    barrier();
    parts[thread] = value;
    barrier();
    // In two steps of 16: barriers take longer than what lies between them.
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

#ifdef STEP
vec2 turned(vec2 x, int i) {
    const float c0 = float(cosines[cosines_first + i]), s0 = float(sines[sines_first + i]);
    const float c1 = float(cosines[cosines_first + second + i]);
    const float s1 = float(sines[sines_first + second + i]);
    return vec2(x.x * c0 - x.y * s0, x.x * s1 + x.y * c1);
}

float new_score() {
    float sum = 0.0;
    for (int l = 0; l < size; l++) sum += query[l] * new_key[l];
    return sum * scale;
}
// True in the group of a head that arrives last, to be asked by all invocations of each.
bool arrive(int head) {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationIndex == 0) {
        is_last = atomicAdd(counters[head], 1u) == gl_NumWorkGroups.x - 1u;
        if (is_last) counters[head] = 0;  // for the next run
    }
    barrier();
    memoryBarrierBuffer();
    return is_last;
}

// Joins what the groups of a head have made of their keys.
void join(int head, int lane, int lanes, out float most, out float sum, out vec4 made) {
    const int count = int(gl_NumWorkGroups.x), from = head * count * (lanes + 1);
    most = -kInfinity, sum = 0.0, made = vec4(0.0);
    for (int i = 0; i < count; i++)
        most = larger(most, kept_parts[from + i * (lanes + 1) + lanes].x);
    if (most == -kInfinity) return;
    for (int i = 0; i < count; i++) {
        const vec4 part = kept_parts[from + i * (lanes + 1) + lanes];
        const float kept = exact_exp(part.x - most);
        sum += part.y * kept;
        made += kept_parts[from + i * (lanes + 1) + lane] * kept;
    }
}
#endif

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
#ifdef STEP
    const int group_head = head / heads_per_group, from_mask = mask_first + head * mask_head;
    const int from_k = k_.first + group_head * k_.head, from_v = v_.first + group_head * v_.head;
    const int mask_column = 1, old = keys - 1;
#else
    const int from_q = origin(q_, head) + row * q_.row, from_k = origin(k_, head / heads_per_group);
    const int from_v = origin(v_, head / heads_per_group);
    const int from_mask = origin(mask_, head) + row * mask_.row, mask_column = mask_.column;
    const int old = keys;
#endif
    const int lanes = out_size / 4, groups = kThreads / lanes;
    const int lane = thread % lanes, group = thread / lanes;
#ifdef STEP
    const int begin = row * span, end = min(keys, begin + span);
    const bool stores = head % heads_per_group == 0 && end == keys;
    for (int i = thread; i < size / 2; i += kThreads) {
        const int at = i * pair, from_q = q_first + head * size + at;
        const int from = k_.new_first + group_head / k_.repeats * size + at;
        const vec2 now_q = turned(vec2(float(q[from_q]), float(q[from_q + partner])), i);
        const vec2 now_k = turned(vec2(float(new_keys[from]), float(new_keys[from + partner])), i);
        query[at] = now_q.x, query[at + partner] = now_q.y;
        new_key[at] = now_k.x, new_key[at + partner] = now_k.y;
        const int to = from_k + old * k_.row + at;
        if (stores) k_scalars[to] = STORED(now_k.x), k_scalars[to + partner] = STORED(now_k.y);
    }
    const int from_new4 = (v_.new_first + group_head / v_.repeats * out_size) / 4 + lane;
    const vec4 new_value = group == 0 ? vec4(new_values[from_new4]) : vec4(0.0);
    if (group == 0 && stores) v[(from_v + old * v_.row) / 4 + lane] = STORED4(new_value);
#else
    const int begin = 0, end = keys;
    for (int l = thread; l < size; l += kThreads) query[l] = float(q[from_q + l * q_.column]);
#endif
    barrier();
    float most = -kInfinity, sum = 0.0;
    vec4 made = vec4(0.0);
    for (int first = begin; first < end; first += kThreads) {
        const int j = first + thread, count = min(kThreads, end - first);
        float score = -kInfinity;
        if (j < min(old, end)) score = score_of((from_k + j * k_.row) / 4);
#ifdef STEP
        if (j == old && j < end) score = new_score();
#endif
        if (kMask && j < end) score += float(masks[from_mask + j * mask_column]);
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
#ifdef STEP
        if (group == 0 && old - first < count) added += scores[old - first] * new_value;
#endif
        made = made * kept + added;
        most = now;
        barrier();
    }
    outputs[thread] = made;
    barrier();
    if (thread < lanes)
        for (int g = 1; g < groups; g++) made += outputs[g * lanes + thread];
#ifdef STEP
    if (gl_NumWorkGroups.x > 1) {
        const int at = (head * int(gl_NumWorkGroups.x) + row) * (lanes + 1);
        if (thread < lanes) kept_parts[at + thread] = made;
        if (thread == 0) kept_parts[at + lanes] = vec4(most, sum, 0.0, 0.0);
        if (!arrive(head)) return;
        if (thread < lanes) join(head, thread, lanes, most, sum, made);
    }
#endif
    if (thread >= lanes) return;
    if (most == -kInfinity)
        made = vec4(0.0);
    else
        made /= sum;
#ifdef STEP
    const int to = y_first + head * out_size + 4 * thread, step = 1;
#else
    const int to = origin(y_, head) + row * y_.row + 4 * thread * y_.column, step = y_.column;
#endif
    for (int i = 0; i < 4; i++) y[to + i * step] = STORED(made[i]);
}
