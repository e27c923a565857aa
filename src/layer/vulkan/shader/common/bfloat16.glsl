// For shaders of f16 that are also used for bf16 (as_bfloat16 in gpu/spirv.h).
#ifndef BFLOAT16_GLSL
#define BFLOAT16_GLSL
layout(constant_id = 200) const bool kBfloat16 = false;

// To nearest even; NaN stays NaN.
uint bfloat16_of(float v) {
    const uint bits = floatBitsToUint(v);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
// Values that conversions need not round, since Vulkan leaves open how they do that.
float rounded(float v) { return kBfloat16 ? uintBitsToFloat(bfloat16_of(v) << 16) : v; }
vec4 rounded(vec4 v) {
    if (!kBfloat16) return v;
    return uintBitsToFloat(
        uvec4(bfloat16_of(v.x), bfloat16_of(v.y), bfloat16_of(v.z), bfloat16_of(v.w)) << 16);
}
#endif
