// What shaders of applications find defined behind their #version line: ncnn's names.
#ifndef QUOLL_GLSL_SHADER_HEADER_H
#define QUOLL_GLSL_SHADER_HEADER_H

namespace quoll {

// Types by what is stored and computed, then operations on elements of buffers and on the values
// of shared memory, which are the stored ones.
const char kHalfTypes[] = R"(
#extension GL_EXT_shader_16bit_storage : require
#define NCNN_fp16_packed 1
#define NCNN_fp16_storage 1
#define sfp float16_t
#define sfpvec2 f16vec2
#define sfpvec4 f16vec4
)";
const char kFloatTypes[] = R"(
#define sfp float
#define sfpvec2 vec2
#define sfpvec4 vec4
#define sfpmat4 mat4
)";
const char kHalfArithmetic[] = R"(
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define NCNN_fp16_arithmetic 1
#define afp float16_t
#define afpvec2 f16vec2
#define afpvec4 f16vec4
#define afpmat4 f16mat4
)";
const char kFloatArithmetic[] = R"(
#define afp float
#define afpvec2 vec2
#define afpvec4 vec4
#define afpmat4 mat4
)";
// Shared memory holds what is computed with: halves there need arithmetic.
const char kElements[] = R"(
#define buffer_ld1(buffer, at) afp(buffer[at])
#define buffer_ld2(buffer, at) afpvec2(buffer[at])
#define buffer_ld4(buffer, at) afpvec4(buffer[at])
#define buffer_st1(buffer, at, value) { buffer[at] = sfp(value); }
#define buffer_st2(buffer, at, value) { buffer[at] = sfpvec2(value); }
#define buffer_st4(buffer, at, value) { buffer[at] = sfpvec4(value); }
#define buffer_cp1(buffer, at, from, from_at) { buffer[at] = from[from_at]; }
#define buffer_cp2(buffer, at, from, from_at) { buffer[at] = from[from_at]; }
#define buffer_cp4(buffer, at, from, from_at) { buffer[at] = from[from_at]; }
#define buffer_cp1to4(buffer, at, from, at4) { \
    buffer[at].x = from[(at4).x]; buffer[at].y = from[(at4).y]; \
    buffer[at].z = from[(at4).z]; buffer[at].w = from[(at4).w]; }
#define buffer_cp4to1(buffer, at4, from, from_at) { \
    buffer[(at4).x] = from[from_at].x; buffer[(at4).y] = from[from_at].y; \
    buffer[(at4).z] = from[from_at].z; buffer[(at4).w] = from[from_at].w; }
#define sfp2afpmat4(m) afpmat4(m)
#define afp2sfpmat4(m) sfpmat4(m)
#define lfp afp
#define lfpvec4 afpvec4
#define buffer_sm1(buffer, at) afp(buffer[at])
#define buffer_sm4(buffer, at) afpvec4(buffer[at])
#define lfp2afp(v) (v)
#define afp2lfp(v) (v)
#define lfp2afpvec4(v) (v)
#define afp2lfpvec4(v) (v)
)";
// int8: four to an int, unless buffers may hold single ones.
const char kBytes[] = R"(
#extension GL_EXT_shader_8bit_storage : require
#define NCNN_int8_packed 1
#define NCNN_int8_storage 1
#define sint8 int8_t
#define i8buffer_ld1(buffer, at) int(buffer[at])
#define i8buffer_st1(buffer, at, value) { buffer[at] = int8_t(value); }
#define i8buffer_cp1(buffer, at, from, from_at) { buffer[at] = from[from_at]; }
)";
const char kIntegers[] = R"(
#define sint8vec4 int
#define aint8 int
#define aint8vec4 ivec4
#define unpackInt4x8(v) \
    ivec4(bitfieldExtract(v, 0, 8), bitfieldExtract(v, 8, 8), bitfieldExtract(v, 16, 8), \
          bitfieldExtract(v, 24, 8))
#define packInt4x8(v) \
    bitfieldInsert(bitfieldInsert(bitfieldInsert((v).x & 255, (v).y, 8, 8), (v).z, 16, 8), (v).w, \
                   24, 8)
#define float2int8(v) int(clamp(sign(v) * floor(abs(v) + 0.5), -127.0, 127.0))
#define float2int8vec4(v) ivec4(clamp(sign(v) * floor(abs(v) + 0.5), -127.0, 127.0))
#define i8buffer_ld4(buffer, at) unpackInt4x8(buffer[at])
#define i8buffer_st4(buffer, at, value) { buffer[at] = packInt4x8(value); }
#define i8buffer_cp4(buffer, at, from, from_at) { buffer[at] = from[from_at]; }
)";
// Sizes that are specialisation constants where they are known when a pipeline is made, else 0; the
// group's, so that gl_WorkGroupSize is what Pipeline sets (gpu/spirv.h).
const char kSizes[] = R"(
#define psc(name) ((name) == 0 ? p.name : (name))
#define ncnn_glsl_version 1
layout(local_size_x_id = 233, local_size_y_id = 234, local_size_z_id = 235) in;
)";

}  // namespace quoll

#endif
