// Compiles an application's GLSL to SPIR-V at run time, by glslang. In the library quoll_glsl,
// which is built if glslang is found (Debian's glslang-dev).
#ifndef QUOLL_GLSL_H
#define QUOLL_GLSL_H

#include <stdint.h>

#include <vector>

#include "quoll/option.h"

namespace quoll {

// Compiles a compute shader. After its #version line it has the names that ncnn's shaders use: the
// types sfp (stored in buffers: float16_t with opt.use_fp16_storage, else float), afp (arithmetic:
// float, or float16_t with opt.use_fp16_arithmetic) and lfp (shared memory: as sfp) with their vec2
// and vec4; buffer_ld1, st1, cp1 ... of elements of a buffer, psc() and the like; docs/vulkan.md
// lists them. No layout of local sizes is needed, as Pipeline sets those. Returns 0, or a negative
// code after glslang's message.
int compile_spirv_module(const char* text, int bytes, const Option& opt,
                         std::vector<uint32_t>& spirv);
int compile_spirv_module(const char* text, const Option& opt, std::vector<uint32_t>& spirv);

}  // namespace quoll

#endif
