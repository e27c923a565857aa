// For shaders that are compiled twice. With HALVES they multiply halves, two in the time of a
// float on many devices, and add up at most 16 products before their sum is added to one of fp32:
// docs/vulkan.md has the bound of the error. To be included before storage.glsl.
#ifdef HALVES
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define FACTOR float16_t
#define FACTOR4 f16vec4
// An input of a convolution as it is multiplied. Values of int8 are never multiplied as halves.
#define ARRIVED(v) (v)
// Adds v times the 4 x 4 matrix of w0 to w3.
#define ADD_PRODUCTS(sum, v) \
    sum += v.x * w0;         \
    sum += v.y * w1;         \
    sum += v.z * w2;         \
    sum += v.w * w3
#else
#define FACTOR float
#define FACTOR4 vec4
#define ARRIVED(v) arrived(vec4(v))
#define ADD_PRODUCTS(sum, v) sum += v.x * w0 + v.y * w1 + v.z * w2 + v.w * w3
#endif
