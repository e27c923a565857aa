// softmax(q k^T scale + mask) v of one query, whose own key and value are not in the caches yet:
// query and key are turned by their angles first (rotary.comp), and key and value put behind the
// others. A group for each head, or several for `span` keys each: then every one stores what it
// made, and the last one to arrive joins the parts. A few neighbours of a subgroup share a key and
// its value, and each of these has scores and sums of its own until all are joined in shared
// memory: keys and values are loaded at once, and no group waits for a barrier before.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "math.glsl"
#include "pairs.glsl"
#include "storage.glsl"

layout(constant_id = 0) const bool kMask = false;
layout(constant_id = 1) const int kThreads = 64;
layout(local_size_x_id = 1) in;
layout(constant_id = 2) const int kSize = 64;     // of query and key: a multiple of four
layout(constant_id = 3) const int kOutSize = 64;  // of a value: as well
layout(constant_id = 4) const int kAhead = 1;     // keys that an invocation loads at once
layout(constant_id = 5) const int kSubgroup = 8;  // invocations of a subgroup at least
READS4(0, Queries, q);
layout(set = 0, binding = 1) buffer Keys { uvec2 k[]; };  // of four values
layout(set = 0, binding = 1) buffer KeyVectors { VECTOR stored_k[]; };
layout(set = 0, binding = 2) buffer Values { uvec2 v[]; };
layout(set = 0, binding = 2) buffer ValueVectors { VECTOR stored_v[]; };
READS(3, Masks, masks);
WRITES4(4, Output, y);
READS4(5, NewKeys, new_keys);
READS4(6, NewValues, new_values);
READS(7, Cosines, cosines);
READS(8, Sines, sines);
struct Cache {
    int first, row, head;  // steps
    int repeats;           // heads that have the same new row
    int new_first;
};
layout(push_constant) uniform Push {
    int keys, heads_per_group;
    int q_first, y_first, mask_first, mask_head;
    Cache k_, v_;
    int cosines_first, sines_first;
    bool interleaved;
    int second;  // as rotary.comp's
    float scale;
    int span;
};
// Of [head][group] the values, then the largest score and the sum of the weights.
layout(set = 0, binding = 9) coherent buffer Parts { vec4 kept_parts[]; };
layout(set = 0, binding = 10) coherent buffer Counters { uint counters[]; };

const int kLanes = 8;  // of a key
const int kVectors = (kSize / 4 + kLanes - 1) / kLanes;
const int kOutVectors = (kOutSize / 4 + kLanes - 1) / kLanes;
const int kAtOnce = kThreads / kLanes;  // keys
// By subgroup: what its keys make.
shared vec4 shared_sums[kThreads / kSubgroup * (kOutSize / 4)];
shared vec2 shared_weights[kThreads / kSubgroup];
shared bool is_last;

float larger(float a, float b) { return is_nan(a) || a > b ? a : b; }

// What an invocation has: vec4s lane, lane + kLanes, ... of query, new key and new value, ...
vec4 query[kVectors], new_key[kVectors], new_value[kOutVectors];
uvec2 loaded_k[kAhead * kVectors], loaded_v[kAhead * kOutVectors];
// ... and what its keys make: the largest score, the sum of the weights and that of the values.
float most = -kInfinity, weights = 0.0;
vec4 made[kOutVectors];

vec4 floats_of(uvec2 bits) { return vec4(unpacked2(bits.x), unpacked2(bits.y)); }

vec4 angles(int first_cosine, int i) {
    return vec4(float(cosines[first_cosine + i]), float(cosines[first_cosine + i + 1]),
                float(sines[sines_first - cosines_first + first_cosine + i]),
                float(sines[sines_first - cosines_first + first_cosine + i + 1]));
}

// vec4 `at` of a row turned, of which `other` is its partner where pairs are not neighbours.
vec4 turned(vec4 x, vec4 other, int at) {
    const int half_row = kSize / 8;  // vec4s
    if (interleaved) {
        const vec4 a = angles(cosines_first, 2 * at);
        return vec4(x.x * a.x - x.y * a.z, x.x * a.z + x.y * a.x, x.z * a.y - x.w * a.w,
                    x.z * a.w + x.w * a.y);
    }
    const bool is_second = at >= half_row;
    const int first = cosines_first + (is_second ? second : 0);
    const int i = 4 * (is_second ? at - half_row : at);
    const vec4 a = angles(first, i), b = angles(first, i + 2);
    const vec4 c = vec4(a.xy, b.xy), s = vec4(a.zw, b.zw);
    return is_second ? other * s + x * c : x * c - other * s;
}

void take_new(int head, int lane) {
    const int group_head = head / heads_per_group, half_row = kSize / 8;
    const int from_q = (q_first + head * kSize) / 4;
    const int from_k = (k_.new_first + group_head / k_.repeats * kSize) / 4;
    [[unroll]] for (int u = 0; u < kVectors; u++) {
        const int at = min(lane + u * kLanes, kSize / 4 - 1);
        const int other = interleaved ? at : at >= half_row ? at - half_row : at + half_row;
        query[u] = turned(vec4(q[from_q + at]), vec4(q[from_q + other]), at);
        new_key[u] = turned(vec4(new_keys[from_k + at]), vec4(new_keys[from_k + other]), at);
    }
    const int from_v = (v_.new_first + group_head / v_.repeats * kOutSize) / 4;
    [[unroll]] for (int u = 0; u < kOutVectors; u++) new_value[u] =
        vec4(new_values[from_v + min(lane + u * kLanes, kOutSize / 4 - 1)]);
}

void append(int lane, int to_k, int to_v) {
    [[unroll]] for (int u = 0; u < kVectors; u++) {
        const int at = lane + u * kLanes;
        if (at < kSize / 4) stored_k[to_k / 4 + at] = STORED4(new_key[u]);
    }
    [[unroll]] for (int u = 0; u < kOutVectors; u++) {
        const int at = lane + u * kLanes;
        if (at < kOutSize / 4) stored_v[to_v / 4 + at] = STORED4(new_value[u]);
    }
}

// Of kAtOnce keys each from `first` on, as far as they are in the caches, the one with this index.
void load(int first, int end, int key, int lane, int from_k, int from_v) {
    [[unroll]] for (int i = 0; i < kAhead; i++) {
        if (first + i * kAtOnce >= end) break;
        const int j = min(first + i * kAtOnce + key, min(end, keys - 1) - 1);
        [[unroll]] for (int u = 0; u < kVectors; u++) loaded_k[i * kVectors + u] =
            k[(from_k + j * k_.row) / 4 + min(lane + u * kLanes, kSize / 4 - 1)];
        [[unroll]] for (int u = 0; u < kOutVectors; u++) loaded_v[i * kOutVectors + u] =
            v[(from_v + j * v_.row) / 4 + min(lane + u * kLanes, kOutSize / 4 - 1)];
    }
}

void attend(int first, int end, int lane, int from_mask) {
    [[unroll]] for (int i = 0; i < kAhead; i++) {
        const int j = first + i * kAtOnce;
        const bool is_new = j == keys - 1;
        vec4 sums = vec4(0.0);
        [[unroll]] for (int u = 0; u < kVectors; u++) if (lane + u * kLanes < kSize / 4) sums +=
            query[u] * (is_new ? new_key[u] : floats_of(loaded_k[i * kVectors + u]));
        float score = (sums.x + sums.y) + (sums.z + sums.w);
        [[unroll]] for (int s = 1; s < kLanes; s *= 2) score += subgroupShuffleXor(score, s);
        if (j >= end) continue;
        score *= scale;
        if (kMask) score += float(masks[from_mask + j]);
        const float now = larger(most, score);
        const bool nothing = now == -kInfinity;
        const float kept = nothing ? 0.0 : exact_exp(most - now);
        const float weight = nothing ? 0.0 : exact_exp(score - now);
        weights = weights * kept + weight;
        [[unroll]] for (int u = 0; u < kOutVectors; u++) made[u] =
            made[u] * kept +
            weight * (is_new ? new_value[u] : floats_of(loaded_v[i * kOutVectors + u]));
        most = now;
    }
}

// What two sums of weights and values are worth in their joint one.
vec2 shares(float a, float b, out float both) {
    both = larger(a, b);
    if (both == -kInfinity) return vec2(0.0);
    return vec2(exact_exp(a - both), exact_exp(b - both));
}

void join_subgroup() {
    for (uint s = kLanes; s < gl_SubgroupSize; s *= 2) {
        float both;
        const vec2 share = shares(most, subgroupShuffleXor(most, s), both);
        weights = weights * share.x + subgroupShuffleXor(weights, s) * share.y;
        [[unroll]] for (int u = 0; u < kOutVectors; u++) made[u] =
            made[u] * share.x + subgroupShuffleXor(made[u], s) * share.y;
        most = both;
    }
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

void main() {
    const int thread = int(gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID);
    const int lane = thread % kLanes, key = thread / kLanes;
    const int part = int(gl_WorkGroupID.x), head = int(gl_WorkGroupID.y);
    const int group_head = head / heads_per_group;
    const int from_k = k_.first + group_head * k_.head, from_v = v_.first + group_head * v_.head;
    const int begin = part * span, end = min(keys, begin + span);
    load(begin, end, key, lane, from_k, from_v);
    take_new(head, lane);
    if (head % heads_per_group == 0 && end == keys && key == 0)
        append(lane, from_k + (keys - 1) * k_.row, from_v + (keys - 1) * v_.row);
    [[unroll]] for (int u = 0; u < kOutVectors; u++) made[u] = vec4(0.0);
    for (int first = begin;;) {
        attend(first + key, end, lane, mask_first + head * mask_head);
        first += kAhead * kAtOnce;
        if (first >= end) break;
        load(first, end, key, lane, from_k, from_v);
    }
    join_subgroup();
    if (gl_SubgroupInvocationID < kLanes) {
        [[unroll]] for (int u = 0; u < kOutVectors; u++) {
            const int at = lane + u * kLanes;
            if (at < kOutSize / 4) shared_sums[int(gl_SubgroupID) * (kOutSize / 4) + at] = made[u];
        }
        if (lane == 0) shared_weights[gl_SubgroupID] = vec2(most, weights);
    }
    barrier();
    const int lanes = kOutSize / 4, count = int(gl_NumSubgroups);
    most = -kInfinity, weights = 0.0;
    vec4 sum = vec4(0.0);
    if (thread < lanes) {
        for (int i = 0; i < count; i++) most = larger(most, shared_weights[i].x);
        if (most != -kInfinity)
            for (int i = 0; i < count; i++) {
                const vec2 of = shared_weights[i];
                const float share = exact_exp(of.x - most);
                weights += of.y * share;
                sum += shared_sums[i * lanes + thread] * share;
            }
    }
    const int parts = int(gl_NumWorkGroups.x);
    if (parts > 1) {
        const int at = head * parts * (lanes + 1);
        if (thread < lanes) kept_parts[at + part * (lanes + 1) + thread] = sum;
        if (thread == 0)
            kept_parts[at + part * (lanes + 1) + lanes] = vec4(most, weights, 0.0, 0.0);
        if (!arrive(head)) return;
        if (thread >= lanes) return;
        most = -kInfinity, weights = 0.0, sum = vec4(0.0);
        for (int i = 0; i < parts; i++)
            most = larger(most, kept_parts[at + i * (lanes + 1) + lanes].x);
        for (int i = 0; i < parts && most != -kInfinity; i++) {
            const vec4 of = kept_parts[at + i * (lanes + 1) + lanes];
            const float share = exact_exp(of.x - most);
            weights += of.y * share;
            sum += kept_parts[at + i * (lanes + 1) + thread] * share;
        }
    }
    if (thread >= lanes) return;
    y[(y_first + head * kOutSize) / 4 + thread] =
        STORED4(most == -kInfinity ? vec4(0.0) : sum / weights);
}
