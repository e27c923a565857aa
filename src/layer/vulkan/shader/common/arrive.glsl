// Of groups that share a result: who stores its part last goes on with all of them.
// ARRIVE_BINDING: numbers that are 0 between runs.
layout(set = 0, binding = ARRIVE_BINDING) coherent buffer Counters { uint counters[]; };
shared bool is_last;

// To be asked by all invocations of each of `groups` groups, behind their stores to coherent buffers:
// true in the one that arrives last at a counter.
bool arrive(int counter, uint groups) {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationIndex == 0) {
        is_last = atomicAdd(counters[counter], 1u) == groups - 1u;
        if (is_last) counters[counter] = 0;  // for the next run
    }
    barrier();
    memoryBarrierBuffer();
    return is_last;
}
