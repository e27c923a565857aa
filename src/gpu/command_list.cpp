#include "gpu/command_list.h"

#include <algorithm>

#include "gpu/user_pipeline.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

const VkPipelineStageFlags kStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
const VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
// For the descriptor sets of applications' shaders.
const uint32_t kSetsOfPool = 32, kMostUserBindings = 16;
const VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

void barrier(const DeviceFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags stage,
             VkAccessFlags access) {
    VkMemoryBarrier all = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    all.srcAccessMask = kWrites | kReads, all.dstAccessMask = access;
    vk.CmdPipelineBarrier(commands, kStages, stage, 0, 1, &all, 0, nullptr, 0, nullptr);
}

}  // namespace

CommandList::~CommandList() {
    reset();
    device_->give_back_fence(fence_);
    device_->give_back_commands(own_);
}

VkResult CommandList::create() {
    if (own_.pool) return VK_SUCCESS;
    const VkResult result = fence_ ? VK_SUCCESS : device_->take_fence(&fence_);
    return result == VK_SUCCESS ? device_->take_commands(&own_) : result;
}

VkResult CommandList::open() {
    if (is_open_) return VK_SUCCESS;
    const DeviceFunctions& vk = device_->vk();
    VkResult result = create();
    if (result == VK_SUCCESS && used_ == own_.buffers.size()) {
        VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = own_.pool, allocate.commandBufferCount = 1;
        VkCommandBuffer made = VK_NULL_HANDLE;
        result = vk.AllocateCommandBuffers(device_->handle(), &allocate, &made);
        if (result == VK_SUCCESS) own_.buffers.push_back(made);
    }
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    if (result == VK_SUCCESS) result = vk.BeginCommandBuffer(own_.buffers[used_], &begin);
    if (result != VK_SUCCESS) return result;
    is_open_ = true;
    touched_.clear();
    order_.push_back(own_.buffers[used_++]);
    return VK_SUCCESS;
}

// What is submitted next, and the host, see what this list has written.
VkResult CommandList::close() {
    if (!is_open_) return VK_SUCCESS;
    is_open_ = false;
    const DeviceFunctions& vk = device_->vk();
    barrier(vk, order_.back(), kStages | VK_PIPELINE_STAGE_HOST_BIT,
            kReads | kWrites | VK_ACCESS_HOST_READ_BIT);
    return vk.EndCommandBuffer(order_.back());
}

namespace {

// Where the channels and items of a blob are, in bytes.
struct Places {
    VkBuffer buffer;
    size_t offset, channel_step, item_step;
};

Places places_of(const VkMat& m) {
    return {buffer_of(*m.data), m.buffer_offset(), m.cstep * m.elemsize, m.nstep * m.elemsize};
}

// Adds the copies between blobs with the sizes of `m`: as few as the gaps allow.
void add(const Places& x, const Places& y, const VkMat& m, std::vector<CommandList::Copy>* copies) {
    const size_t channel = (size_t)m.w * m.h * m.d * m.elemsize, item = channel * m.c;
    const bool whole = m.c == 1 || (x.channel_step == channel && y.channel_step == channel);
    const bool joined = whole && (m.n == 1 || (x.item_step == item && y.item_step == item));
    const int items = joined ? 1 : m.n, channels = whole ? 1 : m.c;
    const size_t bytes = joined ? item * m.n : whole ? item : channel;
    for (int b = 0; b < items; b++)
        for (int q = 0; q < channels; q++)
            copies->push_back({x.buffer, x.offset + b * x.item_step + q * x.channel_step, y.buffer,
                               y.offset + b * y.item_step + q * y.channel_step, bytes});
}

}  // namespace

void CommandList::add_copies(const VkMat& from, const VkMat& to, std::vector<Copy>* copies) {
    add(places_of(from), places_of(to), from, copies);
}

void CommandList::add_copies(const VkMat& from, VkBuffer to, size_t to_offset,
                             std::vector<Copy>* copies) {
    const size_t channel = (size_t)from.w * from.h * from.d * from.elemsize;
    add(places_of(from), {to, to_offset, channel, channel * from.c}, from, copies);
}

int CommandList::copy(const std::vector<Copy>& copies) {
    const VkResult result = open();
    if (result != VK_SUCCESS) return device_->error("recording of copies", result);
    const DeviceFunctions& vk = device_->vk();
    const auto is_touched = [&](VkBuffer buffer, size_t first, size_t bytes) {
        return std::any_of(touched_.begin(), touched_.end(), [&](const Range& r) {
            return r.buffer == buffer && r.first < first + bytes && first < r.end;
        });
    };
    const bool depends = std::any_of(copies.begin(), copies.end(), [&](const Copy& c) {
        return is_touched(c.from, c.from_offset, c.bytes) || is_touched(c.to, c.to_offset, c.bytes);
    });
    if (touched_.empty() || depends) {
        barrier(vk, order_.back(), kStages, kReads | kWrites);
        touched_.clear();
    }
    for (const Copy& c : copies) {
        touched_.push_back({c.from, c.from_offset, c.from_offset + c.bytes});
        touched_.push_back({c.to, c.to_offset, c.to_offset + c.bytes});
        const VkBufferCopy range = {c.from_offset, c.to_offset, c.bytes};
        vk.CmdCopyBuffer(order_.back(), c.from, c.to, 1, &range);
    }
    return kOk;
}

VkResult CommandList::make_set(VkDescriptorSetLayout layout, VkDescriptorSet* set) {
    const DeviceFunctions& vk = device_->vk();
    if (sets_left_ == 0) {
        const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           kSetsOfPool * kMostUserBindings};
        VkDescriptorPoolCreateInfo pool = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
        pool.maxSets = kSetsOfPool, pool.poolSizeCount = 1, pool.pPoolSizes = &size;
        VkDescriptorPool made;
        const VkResult result = vk.CreateDescriptorPool(device_->handle(), &pool, nullptr, &made);
        if (result != VK_SUCCESS) return result;
        set_pools_.push_back(made);
        sets_left_ = kSetsOfPool;
    }
    VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    info.descriptorPool = set_pools_.back(), info.descriptorSetCount = 1;
    info.pSetLayouts = &layout;
    sets_left_--;
    return vk.AllocateDescriptorSets(device_->handle(), &info, set);
}

int CommandList::buffers_of(const std::vector<VkMat>& bindings,
                            std::vector<VkDescriptorBufferInfo>* buffers) {
    for (const VkMat& m : bindings) {
        if (!m.empty()) {
            buffers->push_back({buffer_of(*m.data), m.buffer_offset(), (m.bytes() + 3) / 4 * 4});
            continue;
        }
        if (!nothing_) nothing_ = GpuBuffer::create(*device_, MemoryUse::kDevice, 16);
        if (!nothing_) return kOutOfMemory;
        buffers->push_back({nothing_->handle(), 0, nothing_->bytes()});
    }
    return kOk;
}

int CommandList::dispatch(const Bound& bound, const std::vector<VkDescriptorBufferInfo>& buffers,
                          const void* push, size_t push_bytes, const uint32_t groups[3]) {
    VkDescriptorSet set = VK_NULL_HANDLE;
    VkResult result = open();
    if (result == VK_SUCCESS) result = make_set(bound.set_layout, &set);
    if (result != VK_SUCCESS) return device_->error("recording of a shader", result);
    const DeviceFunctions& vk = device_->vk();
    VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set, write.descriptorCount = (uint32_t)buffers.size();
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, write.pBufferInfo = buffers.data();
    if (!buffers.empty()) vk.UpdateDescriptorSets(device_->handle(), 1, &write, 0, nullptr);
    const VkCommandBuffer commands = order_.back();
    touched_.clear();
    barrier(vk, commands, kStages, kReads | kWrites);
    vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, bound.pipeline);
    vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, bound.layout, 0, 1, &set, 0,
                             nullptr);
    if (push_bytes)
        vk.CmdPushConstants(commands, bound.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            (uint32_t)push_bytes, push);
    vk.CmdDispatch(commands, groups[0], groups[1], groups[2]);
    return kOk;
}

int CommandList::dispatch(const Pipeline& pipeline, const std::vector<VkMat>& bindings,
                          const std::vector<vk_constant_type>& constants,
                          const uint32_t groups[3]) {
    const PipelineObjects& made = pipeline.handles()->objects;
    std::vector<VkDescriptorBufferInfo> buffers;
    QUOLL_RETURN_IF_ERROR(buffers_of(bindings, &buffers));
    groups_ += (uint64_t)groups[0] * groups[1] * groups[2];
    return dispatch({made.pipeline, made.layout, made.set_layout}, buffers, constants.data(),
                    constants.size() * 4, groups);
}

int CommandList::dispatch(const PipelineKey& key,
                          const std::vector<VkDescriptorBufferInfo>& buffers,
                          const std::vector<uint32_t>& push, uint32_t groups_x, uint32_t groups_y) {
    PipelineStore& store = device_->pipelines();
    std::vector<VkPipeline> made;
    QUOLL_RETURN_IF_ERROR(store.get({key}, 1, &made));
    const uint32_t groups[3] = {groups_x, groups_y, 1};
    return dispatch({made[0], store.layout(key.bindings), store.set_layout(key.bindings)}, buffers,
                    push.data(), push.size() * 4, groups);
}

int CommandList::dispatch_linear(const PipelineKey& key,
                                 const std::vector<VkDescriptorBufferInfo>& buffers,
                                 const std::vector<uint32_t>& push, size_t count) {
    // As many groups in x as all devices allow, the rest in y.
    const size_t group = 64, most = 65535, groups = (count + group - 1) / group;
    const size_t rows = (groups + most - 1) / most;
    return dispatch(key, buffers, push, (uint32_t)((groups + rows - 1) / rows), (uint32_t)rows);
}

int CommandList::run_recorded(const std::vector<VkCommandBuffer>& commands, int most) {
    const VkResult result = close();
    if (result != VK_SUCCESS) return device_->error("recording", result);
    order_.insert(order_.end(), commands.begin(), commands.end());
    in_parts_ = in_parts_ || commands.size() > 1;
    if (most > 0) most_ = most_ ? std::min(most_, most) : most;
    return kOk;
}

int CommandList::submit() {
    const VkResult result = close();
    int status = result == VK_SUCCESS ? (int)kOk : device_->error("recording", result);
    if (status == kOk && in_parts_)
        status = device_->run_each(order_, fence_, most_);
    else if (status == kOk && !order_.empty())
        status = device_->begin(order_, fence_, most_);
    if (status != kOk) {
        reset();
        return status;
    }
    submitted_ = true, runs_ = !in_parts_ && !order_.empty();
    for (const std::function<int()>& task : meanwhile_) task();
    meanwhile_.clear();
    return kOk;
}

int CommandList::wait() {
    int status = kOk;
    if (runs_) status = device_->finish(fence_);
    runs_ = false;
    for (const std::function<int()>& task : tasks_)
        if (status == kOk && submitted_) status = task();
    reset();
    return status;
}

void CommandList::reset() {
    if (runs_) device_->finish(fence_);
    runs_ = submitted_ = false;
    if (is_open_) device_->vk().EndCommandBuffer(order_.back());
    is_open_ = false;
    used_ = 0;
    for (VkDescriptorPool pool : set_pools_)
        device_->vk().DestroyDescriptorPool(device_->handle(), pool, nullptr);
    set_pools_.clear();
    sets_left_ = 0;
    order_.clear();
    in_parts_ = false;
    most_ = 0;
    groups_ = 0;
    meanwhile_.clear();
    tasks_.clear();
    kept_.clear();
}

}  // namespace quoll
