// Largest value or average of all pixels: a group of 64 makes eight vec4s of channels of an item,
// eight invocations each a part of the pixels. The output is planar.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"

layout(constant_id = 0) const bool kMax = false;
layout(local_size_x = 8, local_size_y = 8) in;
READS4(0, Input, x);
WRITES(1, Output, y);
layout(push_constant) uniform Push { int channels, pixels, x_pitch, x_first, y_first; };
shared vec4 parts[8][8];

vec4 joined(vec4 s, vec4 v) {
    if (!kMax) return s + v;
    for (int lane = 0; lane < 4; lane++)
        if (!(is_nan(s[lane]) || s[lane] > v[lane])) s[lane] = v[lane];
    return s;
}

void main() {
    const int c = int(gl_WorkGroupID.x) * 8 + int(gl_LocalInvocationID.x);
    const int item = int(gl_WorkGroupID.y), part = int(gl_LocalInvocationID.y);
    vec4 s = kMax ? vec4(-kInfinity) : vec4(0.0);
    if (4 * c < channels)
        for (int i = part; i < pixels; i += 8)
            s = joined(s, vec4(x[x_first + (item * pixels + i) * x_pitch + c]));
    parts[part][gl_LocalInvocationID.x] = s;
    barrier();
    if (part != 0) return;
    for (int i = 1; i < 8; i++) s = joined(s, parts[i][gl_LocalInvocationID.x]);
    if (!kMax) s /= float(pixels);
    for (int lane = 0; lane < 4; lane++)
        if (4 * c + lane < channels)
            y[y_first + item * channels + 4 * c + lane] = STORED(s[lane]);
}
