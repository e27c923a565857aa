#include "plan/custom_layer.h"

#include <algorithm>

#include "gpu/command_list.h"
#include "quoll/command.h"
#include "quoll/gpu.h"

namespace quoll {

namespace {

int record_item(const Layer& layer, const std::vector<VkMat>& bottoms, std::vector<VkMat>* tops,
                VkCompute& commands, const Option& opt) {
    if (!layer.one_blob_only || bottoms.size() != 1)
        return layer.forward(bottoms, *tops, commands, opt);
    return layer.forward(bottoms[0], (*tops)[0], commands, opt);
}

// Layers as ncnn has them make their outputs by opt.blob_vkallocator, which is never null there.
Option with_allocators(const VulkanDevice& device, Option opt) {
    for (VkAllocator** blobs : {&opt.blob_vkallocator, &opt.workspace_vkallocator})
        if (!*blobs) *blobs = device.acquire_blob_allocator();
    if (!opt.staging_vkallocator) opt.staging_vkallocator = device.acquire_staging_allocator();
    return opt;
}

// Copies the output of one item into that of all.
int stack_item(const Layer& layer, const VkMat& made, int b, int count, VkMat* all,
               VkCompute& commands, const Option& opt) {
    VkMat item;
    QUOLL_RETURN_IF_ERROR(commands.record_convert(made, item, 1, made.dtype, opt));
    Shape shape = item.logical_shape();
    shape.n = count;
    if (b == 0) all->create(shape, opt.blob_vkallocator);
    if (all->empty()) return kOutOfMemory;
    if (all->logical_shape() != shape)
        return layer.fail("expected outputs of one size from all items");
    const VkMat slot = all->batch(b);
    commands.list()->keep(std::make_shared<VkMat>(item));
    commands.list()->keep(std::make_shared<VkMat>(slot));
    return commands.list()->copy({{buffer_of(*item.data), item.buffer_offset(),
                                   buffer_of(*slot.data), slot.buffer_offset(), item.bytes()}});
}

}  // namespace

int record_custom_layer(const Layer& layer, const std::vector<VkMat>& bottoms,
                        std::vector<VkMat>* tops, VkCompute& commands, const Option& given) {
    if (!commands.list()) return layer.fail("there is no device");
    const Option opt = with_allocators(*commands.vulkan_device(), given);
    int count = 1;
    for (const VkMat& m : bottoms) count = std::max(count, m.n);
    if (count == 1 || layer.support_batch) return record_item(layer, bottoms, tops, commands, opt);
    for (const VkMat& m : bottoms)
        if (m.n != 1 && m.n != count)
            return layer.fail("inputs with batch counts %d and %d", m.n, count);
    for (int b = 0; b < count; b++) {
        std::vector<VkMat> items, made(tops->size());
        for (const VkMat& m : bottoms) items.push_back(m.n == 1 ? m : m.batch(b));
        QUOLL_RETURN_IF_ERROR(record_item(layer, items, &made, commands, opt));
        for (size_t i = 0; i < made.size(); i++)
            QUOLL_RETURN_IF_ERROR(stack_item(layer, made[i], b, count, &(*tops)[i], commands, opt));
    }
    return kOk;
}

int upload_custom_layer(Layer& layer, const Option& opt) {
    VkTransfer transfer(layer.vkdev);
    QUOLL_RETURN_IF_ERROR(layer.upload_model(transfer, opt));
    return transfer.submit_and_wait();
}

}  // namespace quoll
