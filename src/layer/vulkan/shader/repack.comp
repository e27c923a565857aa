// Values in another packing and type (VkCompute::record_convert). An invocation computes a word of
// the target, which has no gaps; types are numbers of quoll::DType.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "index.glsl"
#include "integers.glsl"
#include "int8.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kFrom = 0;
layout(constant_id = 1) const int kTo = 0;
layout(set = 0, binding = 0) readonly buffer Input { uint x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { uint y[]; };
// Scalars: all, of an item and of a plane (what lies between two channels of elempack 1), from one
// item of the source to the next, and its first one.
layout(push_constant) uniform Push {
    uint count, item, plane, x_item, x_first;
    uint x_pack, y_pack;
};

const int kF32 = 0, kF16 = 1, kBf16 = 2;

uint log2_of_lanes(int type) {
    return type == kF32 || type == kS32 ? 0u : type == kF16 || type == kBf16 ? 1u : 2u;
}

uint bits_at(uint i) {
    const uint lanes = log2_of_lanes(kFrom), bits = 32u >> lanes;
    return bitfieldExtract(x[i >> lanes], int((i & ((1u << lanes) - 1u)) * bits), int(bits));
}

float value_of(uint bits) {
    if (kFrom == kF16) return unpackHalf2x16(bits).x;
    if (kFrom == kBf16) return uintBitsToFloat(bits << 16);
    if (kFrom == kF32) return uintBitsToFloat(bits);
    return float(wrapped(int(bits), kFrom));
}

// To nearest even; NaN stays NaN.
uint bf16_of(float v) {
    const uint bits = floatBitsToUint(v);
    if (is_nan(v)) return bits >> 16 | 64u;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

uint bits_of(float v) {
    if (kTo == kF16) return packHalf2x16(vec2(v, 0.0));
    if (kTo == kBf16) return bf16_of(v);
    if (kTo == kF32) return floatBitsToUint(v);
    return uint(rounded_to_int8(v)) & 255u;
}

uint scalar_at(uint i) {
    const uint b = i / item, at = i - b * item;
    const uint block = plane * y_pack, outer = at / block, rest = at - outer * block;
    const uint channel = outer * y_pack + rest % y_pack, inner = rest / y_pack;
    const uint from = (channel / x_pack * plane + inner) * x_pack + channel % x_pack;
    const uint bits = bits_at(x_first + b * x_item + from);
    return kFrom == kTo ? bits : bits_of(value_of(bits));
}

void main() {
    const uint lanes = 1u << log2_of_lanes(kTo), first = linear_index() * lanes;
    if (first >= count) return;
    uint word = 0u;
    for (uint k = 0u; k < lanes && first + k < count; k++)
        word |= scalar_at(first + k) << (32u / lanes * k);
    y[linear_index()] = word;
}
