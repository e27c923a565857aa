// Storage buffers of blobs and weights. Arithmetic is fp32 whatever they hold.
#ifdef STORAGE_F16
#extension GL_EXT_shader_16bit_storage : require
#include "bfloat16.glsl"
#define SCALAR float16_t
#define VECTOR f16vec4
#define STORED(v) float16_t(rounded(v))
#define STORED4(v) f16vec4(rounded(v))
#else
#define SCALAR float
#define VECTOR vec4
#define STORED(v) float(v)
#define STORED4(v) vec4(v)
#endif

// Buffer `block` named `name` at a binding, of scalars or of groups of four.
#define READS(slot, block, name) \
    layout(set = 0, binding = slot) readonly buffer block { SCALAR name[]; }
#define READS4(slot, block, name) \
    layout(set = 0, binding = slot) readonly buffer block { VECTOR name[]; }
#define WRITES(slot, block, name) \
    layout(set = 0, binding = slot) writeonly buffer block { SCALAR name[]; }
#define WRITES4(slot, block, name) \
    layout(set = 0, binding = slot) writeonly buffer block { VECTOR name[]; }

// The first n of four values, 0 for the others; any n.
vec4 first_lanes(vec4 v, int n) {
    return mix(vec4(0.0), v, lessThan(ivec4(0, 1, 2, 3), ivec4(n)));
}
