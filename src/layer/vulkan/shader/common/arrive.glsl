// For groups that share a result: the one that stores its part last goes on with all parts.
// ARRIVE_BINDING: numbers that are 0 between runs.
layout(set = 0, binding = ARRIVE_BINDING) coherent buffer Counters { uint counters[]; };
shared bool is_last;

// To be called by all invocations of each of `groups` groups, after their stores to coherent
// buffers: true in the group that is the last to arrive at a counter.
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
