// Reads and changes SPIR-V modules: the interface of applications' shaders, the size of groups, the
// group at which dispatches begin.
#ifndef QUOLL_GPU_SPIRV_H
#define QUOLL_GPU_SPIRV_H

#include <stddef.h>
#include <stdint.h>

#include <array>
#include <vector>

namespace quoll {

// The specialisation constants by which a shader can take the sizes of its group.
const uint32_t kFirstSizeId = 233;

// Whether the words are SPIR-V that can be read.
bool is_spirv(const uint32_t* words, size_t count);
// The module with groups of x * y * z invocations, whatever it says itself.
std::vector<uint32_t> with_local_size(const uint32_t* words, size_t count,
                                      const uint32_t local_size[3]);

// The module with `first` added to the number of each group (gl_WorkGroupID): of shaders that load
// it, or one of its components by a constant, as glslang compiles them.
std::vector<uint32_t> with_first_group(const uint32_t* words, size_t count,
                                       const std::array<uint32_t, 3>& first);

// The module with bfloat16 where it has half floats (SPV_KHR_bfloat16), which it loads, stores,
// converts and multiplies as matrices, but calculates nothing with; so nothing of f16 is compiled,
// or kept in the library, twice. What packs or unpacks halves asks by constant kBfloat16Id.
std::vector<uint32_t> as_bfloat16(const std::vector<uint32_t>& words);
const uint32_t kBfloat16Id = 200;

}  // namespace quoll

#endif
