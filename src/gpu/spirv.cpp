#include "gpu/spirv.h"

#include <string.h>

#include <algorithm>
#include <map>

#include "quoll/log.h"
#include "quoll/pipeline.h"
#include "quoll/status.h"

namespace quoll {

namespace {

const uint32_t kMagic = 0x07230203;
const size_t kHeader = 5;
const size_t kBound = 3;  // of the header: larger than all ids

// Numbers of the SPIR-V specification.
enum Op {
    kOpExtension = 10,
    kOpExecutionMode = 16,
    kOpCapability = 17,
    kOpTypeFloat = 22,
    kOpTypeVector = 23,
    kOpTypeArray = 28,
    kOpTypeStruct = 30,
    kOpTypePointer = 32,
    kOpConstant = 43,
    kOpConstantComposite = 44,
    kOpFunction = 54,
    kOpVariable = 59,
    kOpLoad = 61,
    kOpAccessChain = 65,
    kOpDecorate = 71,
    kOpMemberDecorate = 72,
    kOpIAdd = 128,
};
enum Decoration {
    kSpecId = 1,
    kBufferBlock = 3,
    kArrayStride = 6,
    kBuiltIn = 11,
    kBinding = 33,
    kOffset = 35,
};
enum StorageClass { kUniform = 2, kPushConstant = 9, kStorageBuffer = 12 };
enum Capability {
    kBfloat16Type = 5116,
    kBfloat16CooperativeMatrix = 5118,
    kCooperativeMatrix = 6022,
};
const char kBfloat16Extension[] = "SPV_KHR_bfloat16";
const uint32_t kBfloat16Encoding = 0;
const uint32_t kLocalSize = 17, kWorkgroupSize = 25, kWorkgroupId = 26;

// Calls f(operation, operands, their count) for each instruction.
template <class F>
void for_each_instruction(const uint32_t* words, size_t count, F f) {
    for (size_t at = kHeader; at < count; at += words[at] >> 16)
        f(words[at] & 0xffff, words + at + 1, (words[at] >> 16) - 1);
}

// By id.
struct Module {
    std::map<uint32_t, uint32_t> bindings, strides, constants, constant_types, pointees;
    std::map<uint32_t, uint32_t> vectors, vector_types;        // components
    std::map<uint32_t, std::pair<uint32_t, uint32_t>> arrays;  // type, length
    std::map<uint32_t, std::vector<uint32_t>> structs;
    std::map<uint32_t, std::map<uint32_t, uint32_t>> offsets;  // of members
    std::map<uint32_t, uint32_t> variables;                    // storage classes
    std::map<uint32_t, uint32_t> variable_types;
    std::vector<uint32_t> buffer_blocks;
    uint32_t group_size = 0;  // the constant that is the built-in
    uint32_t group = 0;       // the variable
    int spec_constants = 0;

    Module(const uint32_t* words, size_t count) {
        for_each_instruction(words, count, [this](uint32_t op, const uint32_t* o, size_t n) {
            if (op == kOpDecorate && n >= 2) decorate(o, n);
            if (op == kOpMemberDecorate && n >= 4 && o[2] == kOffset) offsets[o[0]][o[1]] = o[3];
            if (op == kOpTypeVector && n >= 3) vectors[o[0]] = o[2], vector_types[o[0]] = o[1];
            if (op == kOpTypeArray && n >= 3) arrays[o[0]] = {o[1], o[2]};
            if (op == kOpTypeStruct && n >= 1) structs[o[0]].assign(o + 1, o + n);
            if (op == kOpTypePointer && n >= 3) pointees[o[0]] = o[2];
            if (op == kOpConstant && n >= 3) constants[o[1]] = o[2], constant_types[o[1]] = o[0];
            if (op == kOpVariable && n >= 3) variables[o[1]] = o[2], variable_types[o[1]] = o[0];
        });
    }
    void decorate(const uint32_t* o, size_t n) {
        if (o[1] == kBufferBlock) buffer_blocks.push_back(o[0]);
        if (n < 3) return;
        if (o[1] == kBinding) bindings[o[0]] = o[2];
        if (o[1] == kArrayStride) strides[o[0]] = o[2];
        if (o[1] == kBuiltIn && o[2] == kWorkgroupSize) group_size = o[0];
        if (o[1] == kBuiltIn && o[2] == kWorkgroupId) group = o[0];
        if (o[1] == kSpecId && o[2] < kFirstSizeId)
            spec_constants = std::max(spec_constants, (int)o[2] + 1);
    }
    // Of scalars, vectors and arrays; members of structs by their offsets.
    uint32_t bytes_of(uint32_t type) const {
        const auto vector = vectors.find(type);
        if (vector != vectors.end()) return 4 * vector->second;
        const auto array = arrays.find(type);
        if (array != arrays.end()) {
            const auto length = constants.find(array->second.second);
            const auto stride = strides.find(type);
            return (length == constants.end() ? 1 : length->second) *
                   (stride == strides.end() ? 4 : stride->second);
        }
        const auto members = structs.find(type);
        if (members == structs.end()) return 4;
        uint32_t bytes = 0;
        const auto places = offsets.find(type);
        for (uint32_t i = 0; places != offsets.end() && i < members->second.size(); i++) {
            const auto place = places->second.find(i);
            if (place != places->second.end())
                bytes = std::max(bytes, place->second + bytes_of(members->second[i]));
        }
        return bytes;
    }
    uint32_t type_of(uint32_t variable) const {
        const auto pointee = pointees.find(variable_types.at(variable));
        return pointee == pointees.end() ? 0 : pointee->second;
    }
    bool is_storage_buffer(uint32_t variable) const {
        const uint32_t storage = variables.at(variable), type = type_of(variable);
        return storage == kStorageBuffer ||
               (storage == kUniform &&
                std::find(buffer_blocks.begin(), buffer_blocks.end(), type) != buffer_blocks.end());
    }
};

}  // namespace

bool is_spirv(const uint32_t* words, size_t count) {
    if (!words || count < kHeader || words[0] != kMagic) return false;
    for (size_t at = kHeader; at < count;) {
        const size_t length = words[at] >> 16;
        if (length == 0 || length > count - at) return false;
        at += length;
    }
    return true;
}

int resolve_shader_info(const uint32_t* spv_data, size_t spv_data_size, ShaderInfo& info) {
    memset(&info, 0, sizeof(info));
    if (spv_data_size % 4 || !is_spirv(spv_data, spv_data_size / 4)) {
        QUOLL_LOGE("[Pipeline] these %zu bytes are no SPIR-V module", spv_data_size);
        return kError;
    }
    const Module module(spv_data, spv_data_size / 4);
    const uint32_t most = sizeof(info.binding_types) / sizeof(info.binding_types[0]);
    for (const auto& variable : module.variables) {
        const auto binding = module.bindings.find(variable.first);
        if (variable.second == kPushConstant)
            info.push_constant_count =
                (int)((module.bytes_of(module.type_of(variable.first)) + 3) / 4);
        if (binding == module.bindings.end()) continue;
        if (binding->second >= most) {
            QUOLL_LOGE("[Pipeline] binding %u, expected less than %u", binding->second, most);
            return kError;
        }
        info.binding_count = std::max(info.binding_count, (int)binding->second + 1);
        info.binding_types[binding->second] = module.is_storage_buffer(variable.first) ? 1 : 2;
    }
    info.specialization_count = module.spec_constants;
    return kOk;
}

// The execution mode's, and those of the built-in constant, which goes before it.
std::vector<uint32_t> with_local_size(const uint32_t* words, size_t count,
                                      const uint32_t local_size[3]) {
    const Module module(words, count);
    std::vector<uint32_t> made(words, words + kHeader);
    for_each_instruction(words, count, [&](uint32_t op, const uint32_t* o, size_t n) {
        const size_t at = made.size();
        made.push_back((uint32_t)(n + 1) << 16 | op);
        made.insert(made.end(), o, o + n);
        if (op == kOpExecutionMode && n == 5 && o[1] == kLocalSize)
            std::copy(local_size, local_size + 3, made.begin() + (std::ptrdiff_t)at + 3);
        if (op != kOpConstantComposite || n != 5 || o[1] != module.group_size) return;
        const auto type = module.constant_types.find(o[2]);
        if (type == module.constant_types.end()) return;
        made.resize(at);
        const uint32_t first = made[kBound];
        for (uint32_t i = 0; i < 3; i++)
            made.insert(made.end(),
                        {4u << 16 | kOpConstant, type->second, first + i, local_size[i]});
        made.insert(made.end(),
                    {6u << 16 | kOpConstantComposite, o[0], o[1], first, first + 1, first + 2});
        made[kBound] += 3;
    });
    return made;
}

// The loaded value gets a new id, and so does the sum. `base` and the next two ids are the three
// numbers, base + 3 their vector.
std::vector<uint32_t> with_first_group(const uint32_t* words, size_t count,
                                       const std::array<uint32_t, 3>& first) {
    const Module module(words, count);
    std::vector<uint32_t> made(words, words + kHeader);
    const uint32_t base = made[kBound], all = base + 3;
    made[kBound] += 4;
    std::map<uint32_t, uint32_t> terms;  // by pointer
    if (module.group) terms[module.group] = all;
    bool declared = !module.group;
    for_each_instruction(words, count, [&](uint32_t op, const uint32_t* o, size_t n) {
        if (op == kOpFunction && !declared) {
            const uint32_t vector = module.type_of(module.group);
            const uint32_t number = module.vector_types.at(vector);
            for (uint32_t i = 0; i < 3; i++)
                made.insert(made.end(), {4u << 16 | kOpConstant, number, base + i, first[i]});
            made.insert(made.end(),
                        {6u << 16 | kOpConstantComposite, vector, all, base, base + 1, base + 2});
            declared = true;
        }
        const size_t at = made.size();
        made.push_back((uint32_t)(n + 1) << 16 | op);
        made.insert(made.end(), o, o + n);
        if (op == kOpAccessChain && n == 4 && o[2] == module.group)
            terms[o[1]] = base + module.constants.at(o[3]);
        if (op != kOpLoad || !terms.count(o[2])) return;
        const uint32_t loaded = made[kBound]++;
        made[at + 2] = loaded;
        made.insert(made.end(), {5u << 16 | kOpIAdd, o[0], o[1], loaded, terms[o[2]]});
    });
    return made;
}

std::vector<uint32_t> as_bfloat16(const std::vector<uint32_t>& words) {
    std::vector<uint32_t> made(words.begin(), words.begin() + kHeader);
    const auto add = [&made](uint32_t op, const std::vector<uint32_t>& operands) {
        made.push_back((uint32_t)(operands.size() + 1) << 16 | op);
        made.insert(made.end(), operands.begin(), operands.end());
    };
    std::vector<uint32_t> name(sizeof(kBfloat16Extension) / 4 + 1);
    memcpy(name.data(), kBfloat16Extension, sizeof(kBfloat16Extension));
    add(kOpCapability, {kBfloat16Type});
    bool extended = false;  // behind the capabilities
    for_each_instruction(words.data(), words.size(), [&](uint32_t op, const uint32_t* o, size_t n) {
        if (op != kOpCapability && !extended) add(kOpExtension, name), extended = true;
        std::vector<uint32_t> operands(o, o + n);
        if (op == kOpTypeFloat && o[1] == 16) operands.push_back(kBfloat16Encoding);
        add(op, operands);
        if (op == kOpCapability && o[0] == kCooperativeMatrix)
            add(kOpCapability, {kBfloat16CooperativeMatrix});
    });
    return made;
}

}  // namespace quoll
