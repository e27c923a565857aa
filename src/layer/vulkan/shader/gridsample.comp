// Values at the points of a grid: an invocation for each value of the output.
// layer/vision/gridsample.cpp defines what a point means along an axis.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kSampling = 1;  // 1 bilinear, 2 nearest, 3 bicubic
layout(constant_id = 1) const int kPadding = 1;   // 1 zeros, 2 border, 3 reflection
layout(constant_id = 2) const bool kAlign = false;
layout(constant_id = 3) const bool kExact = false;
layout(constant_id = 4) const int kAxes = 2;
READS(0, Image, x);
READS(1, Grid, grid);
WRITES(2, Output, y);
// Axes w, h, d, c, n of the output; the image goes along the last two, the grid along all but c.
layout(push_constant) uniform Push {
    uint count, x_first, grid_first, y_first, coordinate_step;
    uint sizes[5], grid_steps[5];
    uint x_c, x_n;
    int x_sizes[3], x_steps[3];
};

// NaN becomes the first pixel.
float clamped(float at, int size) { return at > 0.0 ? min(at, float(size - 1)) : 0.0; }

float reflected(float at, int high) {
    if (high == 0) return 0.0;
    const float twice = 2.0 * float(high), a = abs(at);
    precise float rest = a - floor(a / twice) * twice;
    if (rest < 0.0) rest += twice;
    if (rest >= twice) rest -= twice;
    return rest > float(high) ? twice - rest : rest;
}

float padded(float at, int size) {
    if (kPadding == 2) return clamped(at, size);
    if (kPadding != 3) return at;
    if (!kAlign) return clamped(reflected(at + 0.5, size) - 0.5, size);
    return clamped(reflected(at, size - 1), size);
}

// -1 where there is no pixel.
int pixel(float whole, int size) {
    return whole >= 0.0 && whole < float(size) ? int(whole) : -1;
}

struct Taps {
    int at[4];
    float weight[4];
};
const int kCount = kSampling == 2 ? 1 : kSampling == 1 ? 2 : 4;

float near(float t) { return ((-0.75 + 2.0) * t - (-0.75 + 3.0)) * t * t + 1.0; }

Taps taps_of(float point, int size) {
    Taps t;
    if (is_nan(point)) point = -1.0;
    precise float p = kAlign ? (point + 1.0) / 2.0 * float(size - 1)
                             : ((point + 1.0) * float(size) - 1.0) / 2.0;
    if (kSampling == 3) {
        const float second = floor(p), beyond = p - second, far = beyond + 1.0;
        t.weight[0] = ((-0.75 * far + 3.75) * far - 6.0) * far + 3.0;
        t.weight[1] = near(beyond);
        t.weight[2] = near(1.0 - beyond);
        t.weight[3] = 1.0 - t.weight[0] - t.weight[1] - t.weight[2];
        for (int i = 0; i < 4; i++)
            t.at[i] = pixel(trunc(padded(second - 1.0 + float(i), size)), size);
        return t;
    }
    const float at = padded(p, size);
    const float low = kSampling == 1 ? floor(at) : kExact ? roundEven(at) : floor(at + 0.5);
    t.at[0] = pixel(low, size), t.at[1] = pixel(low + 1.0, size);
    t.weight[0] = kSampling == 1 ? 1.0 - (at - low) : 1.0, t.weight[1] = at - low;
    return t;
}

void main() {
    const uint number = linear_index();
    if (number >= count) return;
    uint i = number, point = grid_first, at[5];
    for (int axis = 0; axis < 5; axis++) {
        const uint rest = i / sizes[axis];
        at[axis] = i - rest * sizes[axis];
        point += at[axis] * grid_steps[axis];
        i = rest;
    }
    const int from = int(x_first + at[3] * x_c + at[4] * x_n);
    Taps taps[3];
    for (int axis = 0; axis < kAxes; axis++)
        taps[axis] = taps_of(float(grid[point + uint(axis) * coordinate_step]), x_sizes[axis]);
    float sum = 0.0;
    for (int k = 0; k < (kAxes == 3 ? kCount : 1); k++) {
        const int deep = kAxes == 3 ? taps[2].at[k] : 0;
        float slice = 0.0;
        for (int j = 0; j < kCount; j++) {
            float row = 0.0;
            for (int l = 0; l < kCount; l++) {
                const int across = taps[0].at[l], down = taps[1].at[j];
                const bool inside = across >= 0 && down >= 0 && deep >= 0;
                const int place = from + across * x_steps[0] + down * x_steps[1] + deep * x_steps[2];
                row += (inside ? float(x[inside ? place : from]) : 0.0) * taps[0].weight[l];
            }
            slice += row * taps[1].weight[j];
        }
        sum += slice * (kAxes == 3 ? taps[2].weight[k] : 1.0);
    }
    y[y_first + number] = STORED(sum);
}
