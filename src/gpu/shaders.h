// The shaders that were compiled into the library, by the rows of layer/vulkan/shader/variants.inc.
#ifndef QUOLL_GPU_SHADERS_H
#define QUOLL_GPU_SHADERS_H

#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "quoll/mat.h"

namespace quoll {

// What values of blobs and weights are stored as on the device.
// bf16: the code of f16, with another type (as_bfloat16 in gpu/spirv.h).
enum class Storage { f32, f16, bf16 };
inline size_t storage_size(Storage storage) { return storage == Storage::f32 ? 4 : 2; }
inline DType dtype_of(Storage storage) {
    return storage == Storage::f16    ? DType::f16
           : storage == Storage::bf16 ? DType::bf16
                                      : DType::f32;
}

enum class Shader {
#define QUOLL_SHADER(name, ...) name,
#include "layer/vulkan/shader/variants.inc"
#undef QUOLL_SHADER
};

const int kShaderCount = 0
#define QUOLL_SHADER(...) +1
#include "layer/vulkan/shader/variants.inc"
#undef QUOLL_SHADER
    ;

struct ShaderCode {
    const unsigned char* packed;  // null where the row has no such storage type
    size_t bytes, words;
    bool matrix;  // for devices with MatrixUnits
    std::vector<uint32_t> spirv() const;
};
ShaderCode shader_code(Shader shader, Storage storage);
const char* shader_name(Shader shader);

}  // namespace quoll

#endif
