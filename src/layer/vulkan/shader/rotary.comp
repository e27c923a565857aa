// Rotary position embedding: an invocation rotates a pair of values.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

READS(0, Input, x);
READS(1, Cosines, cosines);
READS(2, Sines, sines);
WRITES(3, Output, y);
// times: outputs of each channel, one after the other, y_channel values from one to the next.
// second: from the angle of a pair's first value to that of the other one.
layout(push_constant) uniform Push {
    uint count, half_w, rows, pair, partner, second, angles_w;
    uint x_first, cosines_first, sines_first, y_first, times, y_channel;
};

void main() {
    const uint index = linear_index();
    if (index >= count) return;
    const uint row = index / half_w, i = index - row * half_w;
    const uint at = row * 2u * half_w + i * pair, angle = row % rows * angles_w + i;
    const float a = float(x[x_first + at]), b = float(x[x_first + at + partner]);
    const uint c = cosines_first + angle, s = sines_first + angle;
    const float first = a * float(cosines[c]) - b * float(sines[s]);
    const float last = a * float(sines[s + second]) + b * float(cosines[c + second]);
    uint to = y_first + row / rows * times * y_channel + row % rows * 2u * half_w + i * pair;
    for (uint t = 0u; t < times; t++, to += y_channel) {
        y[to] = STORED(first);
        y[to + partner] = STORED(last);
    }
}
