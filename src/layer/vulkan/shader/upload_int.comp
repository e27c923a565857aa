// From a staging buffer, without gaps, to integers, and back (DOWNLOAD): a word each on the device.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "index.glsl"
#include "integers.glsl"

layout(constant_id = 0) const int kType = kS32;
layout(push_constant) uniform Push { uint count, first; };

#ifdef DOWNLOAD
layout(set = 0, binding = 0) readonly buffer Input { int x[]; };
layout(set = 0, binding = 1) writeonly buffer Host { uint words[]; };

void main() {
    const uint i = linear_index();
    if (kType == kS32) {
        if (i < count) words[i] = uint(x[first + i]);
        return;
    }
    if (4u * i >= count) return;
    uint word = 0u;
    for (uint k = 0u; k < 4u && 4u * i + k < count; k++)
        word |= (uint(x[first + 4u * i + k]) & 255u) << (8u * k);
    words[i] = word;
}
#else
layout(set = 0, binding = 0) readonly buffer Host { uint words[]; };
layout(set = 0, binding = 1) writeonly buffer Output { int y[]; };

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    y[first + i] = kType == kS32 ? int(words[i])
                                 : wrapped(int(words[i / 4u] >> (8u * (i % 4u))), kType);
}
#endif
