// Largest value or average of all pixels: a group of 128 computes two vec4s of channels of an item,
// 64 invocations each a part of the pixels. The output is planar. PARTS: the sums of a part of the
// pixels.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"
#include "extremes.glsl"

layout(constant_id = 0) const bool kMax = false;
layout(local_size_x = 2, local_size_y = 64) in;
READS4(0, Input, x);
#ifdef PARTS
layout(set = 0, binding = 1) writeonly buffer Output { vec4 y[]; };  // [item][part][vec4s]
#else
WRITES(1, Output, y);
#endif
layout(push_constant) uniform Push { int channels, pixels, x_pitch, x_first, y_first; };
shared vec4 parts[64][2];

vec4 joined(vec4 s, vec4 v) {
    if (!kMax) return s + v;
    for (int lane = 0; lane < 4; lane++)
        s[lane] = maximum(s[lane], v[lane]);
    return s;
}

void main() {
    const int c = int(gl_WorkGroupID.x) * 2 + int(gl_LocalInvocationID.x);
    const int item = int(gl_WorkGroupID.y), part = int(gl_LocalInvocationID.y);
    vec4 s = kMax ? vec4(-kInfinity) : vec4(0.0);
    if (4 * c < channels) {
#ifdef PARTS
        const int first = x_first + int(gl_WorkGroupID.z) * pixels * x_pitch + c;
        for (int i = item * 256 + part; i < min(item * 256 + 256, pixels); i += 64)
            s += vec4(x[first + i * x_pitch]);
#else
        const int first = x_first + item * pixels * x_pitch + c;
        int i = part;
        for (; i + 192 < pixels; i += 256) {
            const vec4 v0 = vec4(x[first + i * x_pitch]), v1 = vec4(x[first + (i + 64) * x_pitch]);
            const vec4 v2 = vec4(x[first + (i + 128) * x_pitch]);
            const vec4 v3 = vec4(x[first + (i + 192) * x_pitch]);
            s = joined(joined(joined(joined(s, v0), v1), v2), v3);
        }
        for (; i < pixels; i += 64) s = joined(s, vec4(x[first + i * x_pitch]));
#endif
    }
    parts[part][gl_LocalInvocationID.x] = s;
    for (int n = 32; n > 0; n /= 2) {
        barrier();
        if (part < n)
            parts[part][gl_LocalInvocationID.x] = s =
                joined(s, parts[part + n][gl_LocalInvocationID.x]);
    }
    if (part != 0) return;
#ifdef PARTS
    const int to = int(gl_WorkGroupID.z * gl_NumWorkGroups.y) + item;
    if (4 * c < channels) y[to * ((channels + 3) / 4) + c] = s;
    return;
#else
    if (!kMax) s /= float(pixels);
    for (int lane = 0; lane < 4; lane++)
        if (4 * c + lane < channels)
            y[y_first + item * channels + 4 * c + lane] = STORED(s[lane]);
#endif
}
