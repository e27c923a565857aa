#include "gpu/shaders.h"

namespace quoll {

namespace {

// Most words of SPIR-V are small numbers: seven bits of them a byte, the lowest first, and the
// highest bit where more follow, take half the room. The compiler packs.
template <size_t N>
constexpr size_t count_bytes(const uint32_t (&words)[N]) {
    size_t bytes = 0;
    for (uint32_t word : words)
        for (bytes++; word >= 128; word >>= 7) bytes++;
    return bytes;
}

template <const auto& kWords>
struct Packed {
    struct Bytes {
        unsigned char values[count_bytes(kWords)];
    };
    static constexpr Bytes pack() {
        Bytes made = {};
        size_t at = 0;
        for (uint32_t word : kWords) {
            for (; word >= 128; word >>= 7) made.values[at++] = (unsigned char)(word | 128);
            made.values[at++] = (unsigned char)word;
        }
        return made;
    }
    static constexpr Bytes kBytes = pack();
};
#define PACKED_SPIRV(words) \
    Packed<words>::kBytes.values, sizeof(Packed<words>::kBytes), sizeof(words) / 4

// Made by cmake/shaders.cmake: an array for each row and storage type, and kShaders, a row of both
// for each Shader.
#include "spirv/shaders.inc"

}  // namespace

std::vector<uint32_t> ShaderCode::spirv() const {
    std::vector<uint32_t> made(words, 0u);
    const unsigned char* from = packed;
    for (uint32_t& word : made) {
        int shift = 0;
        for (; *from & 128; shift += 7) word |= (uint32_t)(*from++ & 127) << shift;
        word |= (uint32_t)*from++ << shift;
    }
    return made;
}

ShaderCode shader_code(Shader shader, Storage storage) {
    return kShaders[(int)shader].code[storage == Storage::f32 ? 0 : 1];
}

const char* shader_name(Shader shader) { return kShaders[(int)shader].name; }

}  // namespace quoll
