// Storage buffers of blobs and weights. Arithmetic is fp32 whatever they hold.
#ifdef STORAGE_F16
#extension GL_EXT_shader_16bit_storage : require
#define STORED float16_t
#define STORED4 f16vec4
#else
#define STORED float
#define STORED4 vec4
#endif

// Buffer `block` named `name` at a binding, of scalars or of groups of four.
#define READS(slot, block, name) \
    layout(set = 0, binding = slot) readonly buffer block { STORED name[]; }
#define READS4(slot, block, name) \
    layout(set = 0, binding = slot) readonly buffer block { STORED4 name[]; }
#define WRITES(slot, block, name) \
    layout(set = 0, binding = slot) writeonly buffer block { STORED name[]; }
#define WRITES4(slot, block, name) \
    layout(set = 0, binding = slot) writeonly buffer block { STORED4 name[]; }

// The first n of four values, 0 for the others; any n.
vec4 first_lanes(vec4 v, int n) {
    return mix(vec4(0.0), v, lessThan(ivec4(0, 1, 2, 3), ivec4(n)));
}
