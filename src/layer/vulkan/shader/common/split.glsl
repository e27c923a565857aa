// Products whose depth is divided among `splits` groups along z. Each stores its sums as a part of
// the tile; the last one to arrive, whichever that is, adds the parts up in their order.
#ifdef INT8
#define SUM4 ivec4
#else
#define SUM4 vec4
#endif
layout(set = 0, binding = 5) coherent buffer Parts { SUM4 parts[]; };
#define ARRIVE_BINDING 6
#include "arrive.glsl"
// False: splits is 1, and the code for more is left out.
layout(constant_id = 19) const bool kDivides = true;

// The number that the groups along z stand for.
uint split_group() { return kDivides ? gl_WorkGroupID.z / uint(splits) : gl_WorkGroupID.z; }
int split_tile() {
    const uint z = split_group();
    return int((z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x +
               gl_WorkGroupID.x);
}
int split_index() { return int(gl_WorkGroupID.z % uint(splits)); }

// To be called by all invocations once the part is stored: true in the group that arrives last.
bool split_arrive(int tile) { return arrive(tile, uint(splits)); }

// The first and the last step, of `steps_of_a_stage` each, that this group adds up.
ivec2 split_range(int stages) {
    if (!kDivides) return ivec2(0, stages);
    const int index = split_index();
    return ivec2(stages * index / splits, stages * (index + 1) / splits);
}

// vec4 `i` of a tile of `size` vec4s.
SUM4 split_sum(int tile, int size, int i) {
    const int from = tile * splits * size + i;
    SUM4 sum = parts[from];
    int s = 1;
    for (; s + 4 <= splits; s += 4) {
        const SUM4 a = parts[from + s * size], b = parts[from + (s + 1) * size];
        const SUM4 c = parts[from + (s + 2) * size], d = parts[from + (s + 3) * size];
        sum = (((sum + a) + b) + c) + d;
    }
    for (; s < splits; s++) sum += parts[from + s * size];
    return sum;
}
