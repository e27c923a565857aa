#include "gpu/pipeline.h"

#include "gpu/spirv.h"
#include "quoll/status.h"
#include "runtime/thread_pool.h"

namespace quoll {

PipelineStore::~PipelineStore() {
    const DeviceFunctions& vk = device_.vk();
    for (const auto& made : pipelines_) vk.DestroyPipeline(device_.handle(), made.second, nullptr);
    for (int i = 0; i <= kMostBindings; i++) {
        if (layouts_[i]) vk.DestroyPipelineLayout(device_.handle(), layouts_[i], nullptr);
        if (sets_[i]) vk.DestroyDescriptorSetLayout(device_.handle(), sets_[i], nullptr);
    }
    if (cache_) vk.DestroyPipelineCache(device_.handle(), cache_, nullptr);
}

bool PipelineStore::open() {
    const VkPipelineCacheCreateInfo cache = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    VkResult result = device_.vk().CreatePipelineCache(device_.handle(), &cache, nullptr, &cache_);
    for (int i = 1; i <= kMostBindings && result == VK_SUCCESS; i++) result = create_layout(i);
    if (result != VK_SUCCESS) device_.error("pipeline layouts", result);
    return result == VK_SUCCESS;
}

VkResult PipelineStore::create_layout(int bindings) {
    VkDescriptorSetLayoutBinding rows[kMostBindings] = {};
    for (int i = 0; i < bindings; i++) {
        rows[i].binding = (uint32_t)i;
        rows[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        rows[i].descriptorCount = 1;
        rows[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = (uint32_t)bindings, set.pBindings = rows;
    const DeviceFunctions& vk = device_.vk();
    const VkResult result =
        vk.CreateDescriptorSetLayout(device_.handle(), &set, nullptr, &sets_[bindings]);
    if (result != VK_SUCCESS) return result;
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
    VkPipelineLayoutCreateInfo layout = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1, layout.pSetLayouts = &sets_[bindings];
    layout.pushConstantRangeCount = 1, layout.pPushConstantRanges = &push;
    return vk.CreatePipelineLayout(device_.handle(), &layout, nullptr, &layouts_[bindings]);
}

VkResult PipelineStore::create(const PipelineKey& key, VkPipeline* pipeline) {
    const DeviceFunctions& vk = device_.vk();
    const ShaderCode code = shader_code(key.shader, key.storage);
    if (!code.words) return VK_ERROR_FEATURE_NOT_PRESENT;
    VkShaderModuleCreateInfo words = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    std::vector<uint32_t> spirv = code.spirv();
    if (key.storage == Storage::bf16) spirv = as_bfloat16(spirv);
    if (key.first_group != std::array<uint32_t, 3>())
        spirv = with_first_group(spirv.data(), spirv.size(), key.first_group);
    words.codeSize = spirv.size() * 4, words.pCode = spirv.data();
    VkShaderModule module;
    VkResult result = vk.CreateShaderModule(device_.handle(), &words, nullptr, &module);
    if (result != VK_SUCCESS) return result;
    std::vector<VkSpecializationMapEntry> entries;
    std::vector<uint32_t> constants = key.constants;
    for (uint32_t i = 0; i < constants.size(); i++) entries.push_back({i, i * 4, 4});
    entries.push_back({kBfloat16Id, (uint32_t)constants.size() * 4, 4});
    constants.push_back(key.storage == Storage::bf16);
    VkSpecializationInfo special;
    special.mapEntryCount = (uint32_t)entries.size(), special.pMapEntries = entries.data();
    special.dataSize = constants.size() * 4, special.pData = constants.data();
    VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module, info.stage.pName = "main";
    info.stage.pSpecializationInfo = &special;
    info.layout = layouts_[key.bindings];
    if (key.has_first_group) info.flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
    // Shaders that use matrix units divide the work among whole subgroups.
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    subgroup.requiredSubgroupSize = device_.features().matrix.subgroup;
    if (code.matrix) {
        info.stage.pNext = &subgroup;
        info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    {
        std::shared_lock<std::shared_mutex> lock(cache_mutex_);
        result = vk.CreateComputePipelines(device_.handle(), cache_, 1, &info, nullptr, pipeline);
    }
    vk.DestroyShaderModule(device_.handle(), module, nullptr);
    return result;
}

// The pipelines among those of `keys` that nobody has made or is making. Others wait for them, so
// they have to be made; those that are not when the claim ends, whatever the reason, are given up.
class PipelineStore::Claim {
public:
    // The constructor that it begins with makes the destructor run if this one throws.
    Claim(PipelineStore* store, const std::vector<PipelineKey>& wanted) : Claim(store) {
        std::lock_guard<std::mutex> lock(store_.mutex_);
        keys.reserve(wanted.size());
        for (const PipelineKey& key : wanted)
            if (store_.pipelines_.emplace(key, VK_NULL_HANDLE).second) keys.push_back(&key);
    }
    ~Claim() {
        {
            std::lock_guard<std::mutex> lock(store_.mutex_);
            for (const PipelineKey* key : keys) {
                const auto found = store_.pipelines_.find(*key);
                if (!found->second) store_.pipelines_.erase(found);
            }
        }
        store_.made_.notify_all();
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    std::vector<const PipelineKey*> keys;

private:
    explicit Claim(PipelineStore* store) : store_(*store) {}
    PipelineStore& store_;
};

int PipelineStore::make(const std::vector<const PipelineKey*>& keys, int threads) {
    std::vector<VkResult> results(keys.size());
    run_tasks((int64_t)keys.size(), threads, [&](int64_t i, int) {
        VkPipeline made = VK_NULL_HANDLE;
        results[i] = create(*keys[i], &made);
        if (results[i] != VK_SUCCESS) return;
        std::lock_guard<std::mutex> lock(mutex_);
        pipelines_[*keys[i]] = made;
        made_.notify_all();
    });
    int status = kOk;
    for (size_t i = 0; i < keys.size(); i++)
        if (results[i] != VK_SUCCESS)
            status = device_.error(shader_name(keys[i]->shader), results[i]);
    return status;
}

// Waits for other threads; false if one of them could not make a pipeline of these.
bool PipelineStore::wait_for(const std::vector<PipelineKey>& keys,
                             std::vector<VkPipeline>* pipelines) {
    std::unique_lock<std::mutex> lock(mutex_);
    pipelines->clear();
    for (const PipelineKey& key : keys) {
        auto found = pipelines_.find(key);
        while (found != pipelines_.end() && !found->second) {
            made_.wait(lock);
            found = pipelines_.find(key);
        }
        if (found == pipelines_.end()) return false;
        pipelines->push_back(found->second);
    }
    return true;
}

int PipelineStore::get(const std::vector<PipelineKey>& keys, int threads,
                       std::vector<VkPipeline>* pipelines) {
    // What a thread has claimed it makes before it waits for others, so that none wait in a circle.
    do {
        const Claim claim(this, keys);
        QUOLL_RETURN_IF_ERROR(make(claim.keys, threads));
    } while (!wait_for(keys, pipelines));
    return kOk;
}

size_t PipelineStore::count() {
    std::lock_guard<std::mutex> lock(mutex_);
    return pipelines_.size();
}

int PipelineStore::save(std::vector<unsigned char>* data) {
    std::lock_guard<std::shared_mutex> lock(cache_mutex_);
    const DeviceFunctions& vk = device_.vk();
    size_t bytes = 0;
    VkResult result = vk.GetPipelineCacheData(device_.handle(), cache_, &bytes, nullptr);
    data->resize(bytes);
    if (result == VK_SUCCESS)
        result = vk.GetPipelineCacheData(device_.handle(), cache_, &bytes, data->data());
    data->resize(bytes);
    return result == VK_SUCCESS ? (int)kOk : device_.error("pipeline cache", result);
}

int PipelineStore::merge(const unsigned char* data, size_t bytes) {
    std::lock_guard<std::shared_mutex> lock(cache_mutex_);
    const DeviceFunctions& vk = device_.vk();
    VkPipelineCacheCreateInfo info = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    info.initialDataSize = bytes, info.pInitialData = data;
    VkPipelineCache other = VK_NULL_HANDLE;
    VkResult result = vk.CreatePipelineCache(device_.handle(), &info, nullptr, &other);
    if (result == VK_SUCCESS) result = vk.MergePipelineCaches(device_.handle(), cache_, 1, &other);
    if (other) vk.DestroyPipelineCache(device_.handle(), other, nullptr);
    return result == VK_SUCCESS ? (int)kOk : device_.error("pipeline cache", result);
}

}  // namespace quoll
