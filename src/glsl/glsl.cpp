#include "quoll/glsl.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <string.h>

#include <string>

#include "glsl/shader_header.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// glslang's tables, made once and kept for the life of the process.
struct Glslang {
    Glslang() { glslang::InitializeProcess(); }
};

std::string header_of(const Option& opt) {
    std::string text = opt.use_fp16_storage ? kHalfTypes : kFloatTypes;
    text += opt.use_fp16_storage && opt.use_fp16_arithmetic ? kHalfArithmetic : kFloatArithmetic;
    if (opt.use_int8_storage) text += kBytes;
    text += kElements;
    text += kIntegers;
    return text + kSizes;
}

// Behind the line of the version, which has to be the first that is no comment; lines keep their
// numbers for messages.
bool insert_header(const std::string& source, const Option& opt, std::string* whole) {
    const size_t version = source.find("#version");
    const size_t end = version == std::string::npos ? version : source.find('\n', version);
    if (end == std::string::npos) return false;
    size_t lines = 2;
    for (size_t i = 0; i < end; i++) lines += source[i] == '\n';
    *whole = source.substr(0, end + 1) + header_of(opt) + "#line " + std::to_string(lines) + "\n" +
             source.substr(end + 1);
    return true;
}

}  // namespace

int compile_spirv_module(const char* text, int bytes, const Option& opt,
                         std::vector<uint32_t>& spirv) {
    static const Glslang glslang_is_ready;
    (void)glslang_is_ready;
    spirv.clear();
    std::string source;
    if (!text || bytes <= 0 ||
        !insert_header(std::string(text, strnlen(text, (size_t)bytes)), opt, &source)) {
        QUOLL_LOGE("[compile_spirv_module] the shader has no #version line");
        return kError;
    }
    const char* const parts[] = {source.c_str()};
    glslang::TShader shader(EShLangCompute);
    shader.setStrings(parts, 1);
    shader.setEntryPoint("main");
    shader.setSourceEntryPoint("main");
    shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
    shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_1);
    shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_3);
    const EShMessages rules = (EShMessages)(EShMsgSpvRules | EShMsgVulkanRules);
    glslang::TProgram program;
    program.addShader(&shader);
    if (!shader.parse(GetDefaultResources(), 450, false, rules) || !program.link(rules)) {
        QUOLL_LOGE("[compile_spirv_module] %s%s", shader.getInfoLog(), program.getInfoLog());
        return kError;
    }
    glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), spirv);
    return kOk;
}

int compile_spirv_module(const char* text, const Option& opt, std::vector<uint32_t>& spirv) {
    return compile_spirv_module(text, text ? (int)strlen(text) : 0, opt, spirv);
}

}  // namespace quoll
