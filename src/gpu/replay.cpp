#include "gpu/replay.h"

#include <string.h>

#include <algorithm>

#include "quoll/status.h"

namespace quoll {

namespace {

void memory_barrier(const DeviceFunctions& vk, VkCommandBuffer commands, VkAccessFlags to,
                    VkPipelineStageFlags stage) {
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT, barrier.dstAccessMask = to;
    vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, stage, 0, 1, &barrier, 0,
                          nullptr, 0, nullptr);
}

void shader_barrier(const DeviceFunctions& vk, VkCommandBuffer commands) {
    memory_barrier(vk, commands, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
}

bool is_given(const Dispatch& dispatch) {
    return std::any_of(dispatch.bindings.begin(), dispatch.bindings.end(),
                       [](const Binding& b) { return b.where == Binding::kGiven; });
}

}  // namespace

std::unique_ptr<Replay> Replay::create(const GpuDevice& device, const Program& program, bool timed,
                                       MemoryUse staging) {
    std::unique_ptr<Replay> replay(new Replay(device, staging != MemoryUse::kDevice));
    if (!replay->allocate(program, timed, staging)) return nullptr;
    VkResult result = replay->create_objects(program, timed);
    if (result == VK_SUCCESS) result = replay->create_sets(program);
    if (result == VK_SUCCESS) result = replay->allocate_commands(program, &replay->commands_);
    const bool waits = replay->given_.size() < program.given.size();
    if (waits) replay->size_ = (size_t)-1;
    if (result == VK_SUCCESS && !waits) result = replay->record(program);
    if (result == VK_SUCCESS) return replay;
    device.error("recording", result);
    return nullptr;
}

Replay::~Replay() {
    const DeviceFunctions& vk = device_.vk();
    if (queries_) vk.DestroyQueryPool(device_.handle(), queries_, nullptr);
    if (descriptors_) vk.DestroyDescriptorPool(device_.handle(), descriptors_, nullptr);
    device_.give_back_fence(fence_);
    if (pool_) vk.DestroyCommandPool(device_.handle(), pool_, nullptr);
}

bool Replay::allocate(const Program& program, bool timed, MemoryUse staging) {
    const bool on_device = staging == MemoryUse::kDevice;
    const MemoryUse in = on_device ? staging : MemoryUse::kUpload;
    const MemoryUse out = on_device ? staging : MemoryUse::kDownload;
    arena_ = GpuBuffer::create(device_, MemoryUse::kDevice, program.arena_bytes);
    if (arena_) upload_ = GpuBuffer::create(device_, in, program.upload_bytes);
    if (upload_) download_ = GpuBuffer::create(device_, out, program.download_bytes);
    if (!download_) return false;
    if (program.fault_bytes) {
        faults_ = GpuBuffer::create(device_, MemoryUse::kDownload, program.fault_bytes);
        if (!faults_) return false;
        memset(faults_->mapped(), 0, program.fault_bytes);
    }
    if (timed && !program.given.empty()) {
        const size_t most = *std::max_element(program.given.begin(), program.given.end());
        timed_given_ = GpuBuffer::create(device_, MemoryUse::kDevice, most);
        if (!timed_given_) return false;
        given_.assign(program.given.size(), {timed_given_->handle(), 0, 0});
    }
    const std::vector<uint32_t> zeros((program.counter_bytes + 3) / 4);
    return zeros.empty() || (zeros_.add_words(zeros, &counters_) == kOk && zeros_.finish() == kOk);
}

VkResult Replay::create_objects(const Program& program, bool timed) {
    const DeviceFunctions& vk = device_.vk();
    VkResult result = device_.take_fence(&fence_);
    if (result != VK_SUCCESS) return result;
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = device_.queue_family();
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    result = vk.CreateCommandPool(device_.handle(), &pool, nullptr, &pool_);
    if (result != VK_SUCCESS || !timed) return result;
    VkQueryPoolCreateInfo queries = {VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    // One at the begin of each submission, and one behind each dispatch.
    query_count_ = (uint32_t)(program.dispatches.size() + program.submissions.size() + 1);
    queries.queryCount = query_count_;
    ends_.resize(program.dispatches.size());
    return vk.CreateQueryPool(device_.handle(), &queries, nullptr, &queries_);
}

VkResult Replay::create_sets(const Program& program) {
    const size_t count = program.dispatches.size();
    if (count == 0) return VK_SUCCESS;
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0};
    std::vector<VkDescriptorSetLayout> layouts;
    for (const Dispatch& dispatch : program.dispatches) {
        size.descriptorCount += (uint32_t)dispatch.bindings.size();
        layouts.push_back(device_.pipelines().set_layout(dispatch.key.bindings));
    }
    const DeviceFunctions& vk = device_.vk();
    VkDescriptorPoolCreateInfo pool = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = (uint32_t)count, pool.poolSizeCount = 1, pool.pPoolSizes = &size;
    VkResult result = vk.CreateDescriptorPool(device_.handle(), &pool, nullptr, &descriptors_);
    if (result != VK_SUCCESS) return result;
    VkDescriptorSetAllocateInfo sets = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    sets.descriptorPool = descriptors_, sets.descriptorSetCount = (uint32_t)count;
    sets.pSetLayouts = layouts.data();
    sets_.resize(count);
    result = vk.AllocateDescriptorSets(device_.handle(), &sets, sets_.data());
    for (size_t i = 0; i < count && result == VK_SUCCESS; i++)
        if (!is_given(program.dispatches[i]) || !given_.empty())
            write_set(program.dispatches[i], sets_[i]);
    return result;
}

void Replay::give(const Program& program, const std::vector<Given>& given) {
    if (given_ == given) return;
    given_ = given;
    size_ = prepared_size_ = (size_t)-1;
    for (size_t i = 0; i < program.dispatches.size(); i++)
        if (is_given(program.dispatches[i])) write_set(program.dispatches[i], sets_[i]);
}

void Replay::write_set(const Dispatch& dispatch, VkDescriptorSet set) const {
    VkDescriptorBufferInfo buffers[kMostBindings];
    for (size_t i = 0; i < dispatch.bindings.size(); i++) {
        const Binding& b = dispatch.bindings[i];
        const VkBuffer handles[] = {
            arena_->handle(), upload_->handle(), download_->handle(),
            b.buffer,         counters_.buffer,  faults_ ? faults_->handle() : VK_NULL_HANDLE};
        if (b.where == Binding::kGiven)
            buffers[i] = {given_[b.block].buffer, given_[b.block].offset + b.offset, b.bytes};
        else
            buffers[i] = {handles[b.where], b.offset, b.bytes};
    }
    VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set, write.descriptorCount = (uint32_t)dispatch.bindings.size();
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, write.pBufferInfo = buffers;
    device_.vk().UpdateDescriptorSets(device_.handle(), 1, &write, 0, nullptr);
}

VkResult Replay::allocate_commands(const Program& program, std::vector<VkCommandBuffer>* commands) {
    VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool_;
    allocate.commandBufferCount = (uint32_t)program.submissions.size() + 1;
    commands->resize(allocate.commandBufferCount);
    return device_.vk().AllocateCommandBuffers(device_.handle(), &allocate, commands->data());
}

VkResult Replay::record(const Program& program) {
    std::vector<size_t> cuts = program.submissions;
    cuts.insert(cuts.begin(), 0);
    cuts.push_back(program.dispatches.size());
    VkResult result = VK_SUCCESS;
    for (size_t i = 0; i < commands_.size() && result == VK_SUCCESS; i++)
        result = record_part(program, commands_[i], cuts[i], cuts[i + 1], (uint32_t)i);
    return result;
}

int Replay::set_size(const Program& program, size_t size) {
    if (size == size_) return kOk;
    if (size == prepared_size_) {
        std::swap(commands_, prepared_);
        std::swap(size_, prepared_size_);
        return kOk;
    }
    size_ = size;
    const VkResult result = record(program);
    if (result == VK_SUCCESS) return kOk;
    size_ = (size_t)-1;
    return device_.error("recording", result);
}

int Replay::prepare_size(const Program& program, size_t size) {
    if (size == size_ || size == prepared_size_) return kOk;
    if (prepared_.empty()) {
        const VkResult result = allocate_commands(program, &prepared_);
        if (result != VK_SUCCESS) return device_.error("recording", result);
    }
    std::swap(commands_, prepared_);
    std::swap(size_, prepared_size_);
    const int status = set_size(program, size);
    std::swap(commands_, prepared_);
    std::swap(size_, prepared_size_);
    return status;
}

VkResult Replay::record_part(const Program& program, VkCommandBuffer commands, size_t first,
                             size_t end, uint32_t part) {
    const DeviceFunctions& vk = device_.vk();
    const VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    const VkResult result = vk.BeginCommandBuffer(commands, &begin);
    if (result != VK_SUCCESS) return result;
    const VkPipelineStageFlagBits stage = VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
    uint32_t query = (uint32_t)first + part;
    if (queries_ && part == 0) vk.CmdResetQueryPool(commands, queries_, 0, query_count_);
    if (queries_) vk.CmdWriteTimestamp(commands, stage, queries_, query);
    // The last run may have been on another queue; its fence was waited for.
    for (size_t i = first; i < end; i++) {
        record_dispatch(commands, program.dispatches[i], sets_[i]);
        if (!queries_) continue;
        ends_[i] = ++query;
        vk.CmdWriteTimestamp(commands, stage, queries_, query);
    }
    memory_barrier(vk, commands,
                   VK_ACCESS_HOST_READ_BIT | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                   VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    return vk.EndCommandBuffer(commands);
}

void Replay::record_dispatch(VkCommandBuffer commands, const Dispatch& d,
                             VkDescriptorSet set) const {
    const DeviceFunctions& vk = device_.vk();
    if (d.barrier_before) shader_barrier(vk, commands);
    const VkPipelineLayout layout = device_.pipelines().layout(d.key.bindings);
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, d.pipeline);
    vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0,
                             nullptr);
    uint32_t push[kPushBytes / 4];
    std::copy(d.push_of(size_), d.push_of(size_) + d.push.size(), push);
    if (d.narrowed >= 0) push[d.narrowed] = narrowed_;
    if (!d.push.empty())
        vk.CmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            (uint32_t)d.push.size() * 4, push);
    const uint32_t* groups = d.groups_of(size_);
    if (d.key.has_first_group)
        vk.CmdDispatchBase(commands, d.first[0], d.first[1], d.first[2], groups[0], groups[1],
                           groups[2]);
    else
        vk.CmdDispatch(commands, groups[0], groups[1], groups[2]);
}

int Replay::run(int most) const { return device_.run_each(commands_, fence_, most); }

int Replay::times(std::vector<double>* seconds) const {
    seconds->clear();
    if (!queries_) return kOk;
    std::vector<uint64_t> ticks(query_count_);
    const VkResult result = device_.vk().GetQueryPoolResults(
        device_.handle(), queries_, 0, query_count_, ticks.size() * 8, ticks.data(), 8,
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    if (result != VK_SUCCESS) return device_.error("timestamps", result);
    for (uint32_t end : ends_)
        seconds->push_back((double)(ticks[end] - ticks[end - 1]) * 1e-9 *
                           device_.limits().timestampPeriod);
    return kOk;
}

}  // namespace quoll
