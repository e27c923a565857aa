// Reads weights that dispatches behind the next barrier want, so that they lie in the device's cache
// by then: a word of each 32 bytes.
#version 450
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x = 128) in;
layout(set = 0, binding = 0) readonly buffer Weights { uint weights[]; };
layout(set = 0, binding = 1) writeonly buffer Nothing { uint nothing[]; };
layout(push_constant) uniform Push { uint words; };

const uint kLoads = 8;

void main() {
    const uint first = gl_WorkGroupID.x * kLoads * 128u + gl_LocalInvocationID.x;
    uint any = 0u;
    [[unroll]] for (uint i = 0u; i < kLoads; i++)
        any ^= weights[min((first + i * 128u) * 8u, words - 1u)];
    // Nobody reads it; without it the loads were for nothing, and compilers would leave them out.
    if (any == 0x5bd1e995u) nothing[0] = any;
}
