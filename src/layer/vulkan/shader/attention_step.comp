// softmax(q k^T scale + mask) v of one query, whose own key and value are not in the caches yet:
// query and key are first rotated by their angles (rotary.comp), and key and value are appended to
// the caches. There is a group for each head, or several with `span` keys each: then each stores
// its partial results, and the last one to arrive combines them. A few neighbours of a subgroup
// share a key and its value, and each of these has scores and sums of its own until all are joined
// in shared memory. A token's groups run once, and the weights of all layers pass the caches
// between two tokens: code comes from the device's memory each time, 128 bytes after the other.
// Nothing is therefore written twice here, and loops are not unrolled.
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
layout(constant_id = 2) const int kSize = 64;             // of query and key: a multiple of four
layout(constant_id = 3) const int kOutSize = 64;          // of a value: as well
layout(constant_id = 4) const int kSubgroup = 8;          // invocations of a subgroup at least
layout(constant_id = 5) const bool kInterleaved = false;  // pairs are neighbours
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
    int second;  // as rotary.comp's
    float scale;
    int span;
};
// Of [head][group] the values, then the largest score and the sum of the weights.
layout(set = 0, binding = 9) coherent buffer Parts { vec4 kept_parts[]; };
#define ARRIVE_BINDING 10
#include "arrive.glsl"

const int kLanes = 8;  // of a key
const int kVectors = (kSize / 4 + kLanes - 1) / kLanes;
const int kOutVectors = (kOutSize / 4 + kLanes - 1) / kLanes;
const int kAtOnce = kThreads / kLanes;  // keys
const int kKeyAt = kSize / 4, kValueAt = 2 * kKeyAt;
shared vec4 new_row[kValueAt + kOutSize / 4];  // query, key, value
// Of each subgroup: the results for its keys.
shared vec4 shared_sums[kThreads / kSubgroup * (kOutSize / 4)];
shared vec2 shared_weights[kThreads / kSubgroup];

float larger(float a, float b) { return is_nan(a) || a > b ? a : b; }

// What an invocation has: vec4s lane, lane + kLanes, ... of the query, of a key and its value, and
// of the next ones, ...
vec4 query[kVectors];
uvec2 now_k[kVectors], now_v[kOutVectors], next_k[kVectors], next_v[kOutVectors];
// ... and what its keys make: the largest score, the sum of the weights and that of the values.
float most = -kInfinity, weights = 0.0;
vec4 made[kOutVectors];

vec4 floats_of(uvec2 bits) { return vec4(unpacked2(bits.x), unpacked2(bits.y)); }
uvec2 bits_of(vec4 v) { return uvec2(packed2(v.xy), packed2(v.zw)); }

// vec4 `at` of a row after its rotation; `other` is its partner where pairs are not neighbours.
vec4 turned(vec4 x, vec4 other, int at) {
    const int half_row = kSize / 8;  // vec4s
    const bool is_second = !kInterleaved && at >= half_row;
    const int first = kInterleaved ? 2 * at : is_second ? 4 * (at - half_row) + second : 4 * at;
    vec4 c, s;
    for (int i = 0; i < 4; i++) {
        const int angle = first + (kInterleaved ? i / 2 : i);
        c[i] = float(cosines[cosines_first + angle]);
        s[i] = float(sines[sines_first + angle]);
    }
    if (kInterleaved) return x * c + x.yxwz * s * vec4(-1.0, 1.0, -1.0, 1.0);
    return x * c + (is_second ? other : -other) * s;
}

// The row of the query, its key and its value; the last group of the first head that has them
// appends the latter two to the caches.
void make_new(int thread, int head, bool stores, int to_k, int to_v) {
    const int group_head = head / heads_per_group, half_row = kSize / 8;
    const int from_q = (q_first + head * kSize) / 4;
    const int from_k = (k_.new_first + group_head / k_.repeats * kSize) / 4;
    const int from_v = (v_.new_first + group_head / v_.repeats * kOutSize) / 4;
    for (int i = thread; i < kValueAt + kOutSize / 4; i += kThreads) {
        const bool is_key = i >= kKeyAt;
        const int at = is_key ? i - kKeyAt : i;
        vec4 x;
        if (i >= kValueAt) {
            x = vec4(new_values[from_v + i - kValueAt]);
        } else {
            const int other = at >= half_row ? at - half_row : at + half_row;
            x = vec4(is_key ? new_keys[from_k + at] : q[from_q + at]);
            const vec4 partner = vec4(is_key ? new_keys[from_k + other] : q[from_q + other]);
            x = turned(x, partner, at);
        }
        new_row[i] = x;
        if (!stores || !is_key) continue;
        if (i >= kValueAt)
            stored_v[to_v / 4 + i - kValueAt] = STORED4(x);
        else
            stored_k[to_k / 4 + at] = STORED4(x);
    }
}

// What was loaded comes next; loads key j, or the last one of the caches.
void load(int j, int lane, int from_k, int from_v) {
    j = min(j, keys - 2);
    [[unroll]] for (int u = 0; u < kVectors; u++) {
        now_k[u] = next_k[u];
        next_k[u] = k[(from_k + j * k_.row) / 4 + min(lane + u * kLanes, kSize / 4 - 1)];
    }
    [[unroll]] for (int u = 0; u < kOutVectors; u++) {
        now_v[u] = next_v[u];
        next_v[u] = v[(from_v + j * v_.row) / 4 + min(lane + u * kLanes, kOutSize / 4 - 1)];
    }
}

void attend(int j, int end, int lane, int from_mask) {
    if (j == keys - 1) {
        [[unroll]] for (int u = 0; u < kVectors; u++) now_k[u] =
            bits_of(new_row[kKeyAt + min(lane + u * kLanes, kSize / 4 - 1)]);
        [[unroll]] for (int u = 0; u < kOutVectors; u++) now_v[u] =
            bits_of(new_row[kValueAt + min(lane + u * kLanes, kOutSize / 4 - 1)]);
    }
    vec4 sums = vec4(0.0);
    [[unroll]] for (int u = 0; u < kVectors; u++) sums += query[u] * floats_of(now_k[u]);
    float score = (sums.x + sums.y) + (sums.z + sums.w);
    [[unroll]] for (int s = 1; s < kLanes; s *= 2) score += subgroupShuffleXor(score, s);
    if (j >= end) return;
    score *= scale;
    if (kMask) score += float(masks[from_mask + j]);
    const float now = larger(most, score);
    const bool nothing = now == -kInfinity;
    const float kept = nothing ? 0.0 : exp(most - now);
    const float weight = nothing ? 0.0 : exp(score - now);
    weights = weights * kept + weight;
    [[unroll]] for (int u = 0; u < kOutVectors; u++) made[u] =
        made[u] * kept + weight * floats_of(now_v[u]);
    most = now;
}

// The factors of two sums of weights and values in their combined sum.
vec2 shares(float a, float b, out float both) {
    both = larger(a, b);
    if (both == -kInfinity) return vec2(0.0);
    return vec2(exp(a - both), exp(b - both));
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

void main() {
    const int thread = int(gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID);
    const int lane = thread % kLanes, key = thread / kLanes;
    const int part = int(gl_WorkGroupID.x), head = int(gl_WorkGroupID.y);
    const int group_head = head / heads_per_group;
    const int from_k = k_.first + group_head * k_.head, from_v = v_.first + group_head * v_.head;
    const int begin = part * span, end = min(keys, begin + span);
    // Two keys of each invocation are being loaded while the row of the query is computed.
    for (int i = 0; i < 2; i++) load(begin + i * kAtOnce + key, lane, from_k, from_v);
    make_new(thread, head, head % heads_per_group == 0 && end == keys, from_k + (keys - 1) * k_.row,
             from_v + (keys - 1) * v_.row);
    barrier();
    [[unroll]] for (int u = 0; u < kVectors; u++)  // 0 behind its end: keys have anything there
        query[u] = lane + u * kLanes < kSize / 4 ? new_row[lane + u * kLanes] : vec4(0.0);
    [[unroll]] for (int u = 0; u < kOutVectors; u++) made[u] = vec4(0.0);
    for (int first = begin; first < end; first += kAtOnce) {
        attend(first + key, end, lane, mask_first + head * mask_head);
        load(first + 2 * kAtOnce + key, lane, from_k, from_v);
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
                const float share = exp(of.x - most);
                weights += of.y * share;
                sum += shared_sums[i * lanes + thread] * share;
            }
    }
    // Slices of a dispatch have fewer groups.
    const int parts = (keys + span - 1) / span;
    if (parts > 1) {
        const int at = head * parts * (lanes + 1);
        if (thread < lanes) kept_parts[at + part * (lanes + 1) + thread] = sum;
        if (thread == 0)
            kept_parts[at + part * (lanes + 1) + lanes] = vec4(most, weights, 0.0, 0.0);
        if (!arrive(head, uint(parts))) return;
        if (thread >= lanes) return;
        most = -kInfinity, weights = 0.0, sum = vec4(0.0);
        for (int i = 0; i < parts; i++)
            most = larger(most, kept_parts[at + i * (lanes + 1) + lanes].x);
        for (int i = 0; i < parts && most != -kInfinity; i++) {
            const vec4 of = kept_parts[at + i * (lanes + 1) + lanes];
            const float share = exp(of.x - most);
            weights += of.y * share;
            sum += kept_parts[at + i * (lanes + 1) + thread] * share;
        }
    }
    if (thread >= lanes) return;
    y[(y_first + head * kOutSize) / 4 + thread] =
        STORED4(most == -kInfinity ? vec4(0.0) : sum / weights);
}
