// Sums over the pixels that a group stores, for ChannelSums: [row of groups][vec4s of channels].
// The shader declares `memory`, of as many uvec4s as there are invocations at least.
layout(constant_id = 18) const bool kSums = false;
layout(set = 0, binding = 8) writeonly buffer Sums { vec4 pixel_sums[]; };

// sum: of an invocation, whose number modulo `columns` is its vec4 of channels behind `first`, of
// `vectors` in all.
void store_pixel_sums(vec4 sum, uint columns, uint threads, uint first, uint vectors) {
    const uint thread = gl_LocalInvocationID.x, c = first + thread;
    barrier();  // what was there is read no more
    memory[thread] = floatBitsToUint(sum);
    barrier();
    if (thread >= columns || c >= vectors) return;
    for (uint i = thread + columns; i < threads; i += columns) sum += uintBitsToFloat(memory[i]);
    pixel_sums[gl_WorkGroupID.x * vectors + c] = sum;
}
