// Two values as they are stored: f16, or bf16.
#include "bfloat16.glsl"
uint packed2(vec2 v) {
    if (kBfloat16) return bfloat16_of(v.x) | bfloat16_of(v.y) << 16;
    return packHalf2x16(v);
}
vec2 unpacked2(uint two) {
    if (kBfloat16) return uintBitsToFloat(uvec2(two << 16, two & 0xffff0000u));
    return unpackHalf2x16(two);
}
// The bits of a float that one value of it has.
uint stored_bits() { return kBfloat16 ? 0xffff0000u : 0xffffe000u; }
