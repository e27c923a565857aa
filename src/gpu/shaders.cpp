#include "gpu/shaders.h"

namespace quoll {

namespace {

// Made by cmake/shaders.cmake: an array for each row and storage type, and kShaders, a row of both
// for each Shader.
#include "spirv/shaders.inc"

}  // namespace

ShaderCode shader_code(Shader shader, Storage storage) {
    return kShaders[(int)shader].code[(int)storage];
}

const char* shader_name(Shader shader) { return kShaders[(int)shader].name; }

}  // namespace quoll
