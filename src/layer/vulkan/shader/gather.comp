// Channels of one or two blobs, each wherever a table says, into the channels of another one: an
// invocation makes four of a pixel.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

READS(0, First, first);
READS(1, Second, second);
WRITES4(2, Output, y);
// For each channel 2 * (its scalar in the first pixel) + (1: of the second blob).
layout(set = 0, binding = 3) readonly buffer Table { uint from[]; };
layout(push_constant) uniform Push {
    uint count, vectors, channels, first_pitch, second_pitch, y_pitch, y_first;
};

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const uint pixel = i / vectors, c = i - pixel * vectors;
    vec4 v = vec4(0.0);
    for (uint lane = 0; lane < 4; lane++) {
        if (4 * c + lane >= channels) break;
        const uint at = from[4 * c + lane];
        v[lane] = (at & 1u) == 0 ? float(first[at / 2 + pixel * first_pitch])
                                 : float(second[at / 2 + pixel * second_pitch]);
    }
    y[y_first + pixel * y_pitch + c] = STORED4(v);
}
