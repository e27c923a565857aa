// Convolution of int8 values, of any axes and groups, and with kernels of one value inner products:
// sums of 32 bits, times a scale, plus a bias, what is added and an activation; floats, or (TO_INT)
// s8 once more. An invocation makes a value; blobs are planar.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "activation.glsl"
#ifdef TO_INT
#include "int8.glsl"
#include "affine8.glsl"
#endif

layout(constant_id = 0) const int kActivation = 0;
layout(constant_id = 1) const bool kAdds = false;
layout(constant_id = 2) const bool kAffine = false;  // values have zero points
layout(set = 0, binding = 0) readonly buffer Input { int x[]; };
layout(set = 0, binding = 1) readonly buffer Weights { uint weights[]; };  // four bytes a word
// Of each output channel: scale of the sum, bias, scale of the output.
layout(set = 0, binding = 2) readonly buffer Factors { float factors[]; };
#ifdef TO_INT
// One form for both types that floats are stored as.
layout(constant_id = 3) const bool kHalf = false;
layout(set = 0, binding = 3) readonly buffer Added { uint added[]; };
float added_at(uint i) {
    if (!kHalf) return uintBitsToFloat(added[i]);
    const vec2 two = unpackHalf2x16(added[i / 2u]);
    return i % 2u == 0u ? two.x : two.y;
}
layout(set = 0, binding = 4) writeonly buffer Output { int y[]; };
#else
READS(3, Added, added);
float added_at(uint i) { return float(added[i]); }
WRITES(4, Output, y);
#endif
layout(push_constant) uniform Push {
    uint count, x_first, added_first, y_first;
    uint inputs, outputs, group_inputs, group_outputs;
    int in_sizes[3], out_sizes[3], kernel[3], stride[3], dilation[3], before[3];
    int pad;  // less the zero point
    float a, b;
    int zero, out_zero;
};

int sum_of(uint item, uint channel, ivec3 at) {
    const uint first_input = channel / group_outputs * group_inputs;
    uint weight = channel * group_inputs * uint(kernel[0] * kernel[1] * kernel[2]);
    const ivec3 begin = at * ivec3(stride[0], stride[1], stride[2]) -
                        ivec3(before[0], before[1], before[2]);
    const ivec3 sizes = ivec3(in_sizes[0], in_sizes[1], in_sizes[2]);
    int sum = 0;
    for (uint c = 0u; c < group_inputs; c++) {
        const uint plane = (item * inputs + first_input + c) * uint(sizes.x * sizes.y * sizes.z);
        for (int kz = 0; kz < kernel[2]; kz++)
            for (int ky = 0; ky < kernel[1]; ky++)
                for (int kx = 0; kx < kernel[0]; kx++, weight++) {
                    const ivec3 p = begin + ivec3(kx * dilation[0], ky * dilation[1],
                                                  kz * dilation[2]);
                    const bool inside = all(greaterThanEqual(p, ivec3(0))) &&
                                        all(lessThan(p, sizes));
                    const uint from = plane + uint((p.z * sizes.y + p.y) * sizes.x + p.x);
                    const int factor = bitfieldExtract(int(weights[weight / 4u]),
                                                       int(8u * (weight % 4u)), 8);
                    sum += factor * (inside ? x[x_first + from] - zero : pad);
                }
    }
    return sum;
}

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const int plane = out_sizes[0] * out_sizes[1] * out_sizes[2], pixel = int(i) % plane;
    const uint channel = i / uint(plane) % outputs, item = i / uint(plane) / outputs;
    const ivec3 at = ivec3(pixel % out_sizes[0], pixel / out_sizes[0] % out_sizes[1],
                           pixel / out_sizes[0] / out_sizes[1]);
    precise float v = float(sum_of(item, channel, at));
    v = v * factors[3u * channel];
    v = v + factors[3u * channel + 1u];
    if (kAdds) v = v + added_at(added_first + i);
    if (kActivation != 0) v = activated(v, kActivation, a, b);
#ifdef TO_INT
    v = v * factors[3u * channel + 2u];
    y[y_first + i] = kAffine ? affine_int8(v, out_zero) : rounded_to_int8(v);
#else
    y[y_first + i] = STORED(v);
#endif
}
