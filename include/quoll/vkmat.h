// VkMat: a Mat in the memory of a GPU, and where that memory comes from. Needs no Vulkan headers.
#ifndef QUOLL_VKMAT_H
#define QUOLL_VKMAT_H

#include <stddef.h>
#include <stdint.h>

#include "quoll/mat.h"
#include "quoll/vulkan_names.h"

namespace quoll {

class VulkanDevice;

// A block of device memory.
struct VkBufferMemory {
    VkBuffer buffer;  // Vulkan's
    size_t offset;    // of the block in it
    size_t capacity;
    void* mapped_ptr;  // where the host sees the block; null: it does not
    int refcount;      // of VkMats, changed by threads
    // For allocators of an application, like all that follows.
    VkDeviceMemory memory;
    uint32_t memory_type_index;    // of that
    mutable VkFlags access_flags;  // VkAccessFlags
    mutable VkFlags stage_flags;   // VkPipelineStageFlags
};

// An image, as allocators that were written for ncnn may make one. No VkMat or shader takes it.
struct VkImageMemory {
    VkImage image;                 // Vulkan's
    VkImageView imageview;         // of all of it
    int width;                     // texels
    int height;                    // texels
    int depth;                     // texels
    int format;                    // a VkFormat
    VkDeviceMemory memory;         // that it is bound to
    void* mapped_ptr;              // where the host sees that; null: it does not
    uint32_t memory_type_index;    // of that memory
    size_t bind_offset;            // bytes, in that memory
    size_t bind_capacity;          // bytes
    mutable VkFlags access_flags;  // VkAccessFlags
    mutable VkFlags stage_flags;   // VkPipelineStageFlags
    mutable int image_layout;      // a VkImageLayout
    mutable int command_refcount;  // of commands that wait
    int refcount;                  // of its users
};

// Where the memory of VkMats comes from.
class VkAllocator {
public:
    explicit VkAllocator(const VulkanDevice* vkdev);
    virtual ~VkAllocator();
    // Frees the blocks that are not in use.
    virtual void clear();
    // A block of at least `size` bytes, with refcount 0; null after a message.
    virtual VkBufferMemory* fastMalloc(size_t size) = 0;
    virtual void fastFree(VkBufferMemory* memory) = 0;
    // For memory that is not coherent: makes what the host wrote visible to the device, and the
    // other way round. They return 0. The library's memory is coherent.
    virtual int flush(VkBufferMemory*) { return 0; }
    virtual int invalidate(VkBufferMemory*) { return 0; }
    // Images, which the library does not ask for; null.
    virtual VkImageMemory* fastMalloc(int, int, int, size_t, int) { return 0; }
    virtual void fastFree(VkImageMemory*) {}

    const VulkanDevice* const vkdev;
    // Of its blocks: the types of memory, 0xffffffff if there are several; whether the host can map
    // them, and sees them without flush().
    uint32_t buffer_memory_type_index, image_memory_type_index, reserved_type_index;
    bool mappable, coherent;

protected:
    // Vulkan's objects for an application's allocator, which destroys them. Null after a message.
    // usage: VkBufferUsageFlags; sizes in bytes.
    VkBuffer create_buffer(size_t size, VkFlags usage);
    // An image of three axes, in texels, and a view of all of it. Vulkan's numbers: a VkFormat, a
    // VkImageTiling, VkImageUsageFlags.
    VkImage create_image(int width, int height, int depth, int format, int tiling, VkFlags usage);
    VkImageView create_imageview(VkImage image, int format);
    VkDeviceMemory allocate_memory(size_t size, uint32_t memory_type_index);
    VkDeviceMemory allocate_dedicated_memory(size_t size, uint32_t memory_type_index, VkImage image,
                                             VkBuffer buffer);
    VkDeviceMemory allocate_import_host_memory(size_t size, uint32_t memory_type_index,
                                               void* host_ptr);

private:
    VkDeviceMemory allocate(size_t size, uint32_t memory_type_index, const void* next);
    VkAllocator(const VkAllocator&);
    VkAllocator& operator=(const VkAllocator&);
};

// Keeps freed blocks, at most kept_bytes, and hands them out again. For any number of threads.
// Destroying one while blocks are in use is reported, and leaks them. The device's memory lives as
// long as its allocators.
class VkPoolAllocator : public VkAllocator {
public:
    ~VkPoolAllocator();
    void clear() override;
    using VkAllocator::fastFree;
    using VkAllocator::fastMalloc;
    VkBufferMemory* fastMalloc(size_t size) override;
    void fastFree(VkBufferMemory* memory) override;
    // A kept block serves requests of at least this part of its size, 0 to 1; 0.5 by default.
    void set_size_compare_ratio(float ratio);

protected:
    enum Use { kBlobs, kWeights, kStaging };
    VkPoolAllocator(const VulkanDevice* vkdev, Use use, size_t kept_bytes);

private:
    struct Private;
    Private* const d;
};

// Memory that only shaders see, if the device has such.
class VkBlobAllocator : public VkPoolAllocator {
public:
    explicit VkBlobAllocator(const VulkanDevice* device, size_t kept_bytes = 64 << 20)
        : VkPoolAllocator(device, kBlobs, kept_bytes) {}
};
class VkWeightAllocator : public VkPoolAllocator {
public:
    explicit VkWeightAllocator(const VulkanDevice* device, size_t kept_bytes = 0)
        : VkPoolAllocator(device, kWeights, kept_bytes) {}
    // prefer_host_memory: memory that the host sees.
    VkWeightAllocator(const VulkanDevice* device, bool prefer_host_memory, size_t kept_bytes = 0)
        : VkPoolAllocator(device, prefer_host_memory ? kStaging : kWeights, kept_bytes) {}
};
// For copies between host and device.
class VkStagingAllocator : public VkPoolAllocator {
public:
    explicit VkStagingAllocator(const VulkanDevice* device, size_t kept_bytes = 64 << 20)
        : VkPoolAllocator(device, kStaging, kept_bytes) {}
};
// For copies of weights.
class VkWeightStagingAllocator : public VkPoolAllocator {
public:
    explicit VkWeightStagingAllocator(const VulkanDevice* device, size_t kept_bytes = 0)
        : VkPoolAllocator(device, kStaging, kept_bytes) {}
};

// Memory of the application that a device reads and writes in place, without a copy
// (VK_EXT_external_memory_host): one VkMat at a time, at its begin. `data` and `size` are multiples
// of alignment(), usually a page; the memory outlives this object and its VkMat. After
// VkCompute::submit_and_wait() the host sees what was written. If the device takes no such memory,
// or not this one, the object is not valid, after a message.
class VkImportedMemory : public VkAllocator {
public:
    VkImportedMemory(const VulkanDevice* vkdev, void* data, size_t size);
    ~VkImportedMemory();
    // In bytes; 0: the device takes no memory of the host.
    static size_t alignment(const VulkanDevice* vkdev);
    bool is_valid() const;
    using VkAllocator::fastFree;
    using VkAllocator::fastMalloc;
    VkBufferMemory* fastMalloc(size_t size) override;
    void fastFree(VkBufferMemory* memory) override;

private:
    struct Private;
    Private* const d;
};

// Sizes, types and elempack are as in Mat. The elements of an item follow each other without gaps,
// in the order c, d, h, w; only the caches that SDPA hands out have room for more rows behind each
// channel (Option::use_growing_cache), as their cstep says. Items of a batch begin on multiples of
// 4,096 bytes if elemsize was given, as those of a Mat do; otherwise there are no gaps between them
// either. Copying shares the memory. A failed allocation leaves a VkMat empty(); nothing throws.
// Nets take any elempack and make 1; an application's shaders may keep what they like in theirs
// (elements of 3 bytes).
class VkMat {
public:
    VkMat();
    explicit VkMat(int w, size_t elemsize, VkAllocator* allocator);
    VkMat(int w, int h, size_t elemsize, VkAllocator* allocator);
    VkMat(int w, int h, int c, size_t elemsize, VkAllocator* allocator);
    VkMat(int w, int h, int d, int c, size_t elemsize, VkAllocator* allocator);
    VkMat(int w, size_t elemsize, int elempack, VkAllocator* allocator);
    VkMat(int w, int h, size_t elemsize, int elempack, VkAllocator* allocator);
    VkMat(int w, int h, int c, size_t elemsize, int elempack, VkAllocator* allocator);
    VkMat(int w, int h, int d, int c, size_t elemsize, int elempack, VkAllocator* allocator);
    // With n items.
    VkMat(int w, size_t elemsize, int elempack, int n, VkAllocator* allocator);
    VkMat(int w, int h, size_t elemsize, int elempack, int n, VkAllocator* allocator);
    VkMat(int w, int h, int c, size_t elemsize, int elempack, int n, VkAllocator* allocator);
    VkMat(int w, int h, int d, int c, size_t elemsize, int elempack, int n, VkAllocator* allocator);
    // In a block of the caller, from its begin; the block outlives the VkMat.
    VkMat(int w, VkBufferMemory* data, size_t elemsize, VkAllocator* allocator);
    VkMat(int w, VkBufferMemory* data, size_t elemsize, int elempack, VkAllocator* allocator);
    VkMat(int w, VkBufferMemory* data, size_t elemsize, int elempack, int n,
          VkAllocator* allocator);
    VkMat(int w, int h, VkBufferMemory* data, size_t elemsize, VkAllocator* allocator);
    VkMat(int w, int h, VkBufferMemory* data, size_t elemsize, int elempack,
          VkAllocator* allocator);
    VkMat(int w, int h, VkBufferMemory* data, size_t elemsize, int elempack, int n,
          VkAllocator* allocator);
    VkMat(int w, int h, int c, VkBufferMemory* data, size_t elemsize, VkAllocator* allocator);
    VkMat(int w, int h, int c, VkBufferMemory* data, size_t elemsize, int elempack,
          VkAllocator* allocator);
    VkMat(int w, int h, int c, VkBufferMemory* data, size_t elemsize, int elempack, int n,
          VkAllocator* allocator);
    VkMat(int w, int h, int d, int c, VkBufferMemory* data, size_t elemsize,
          VkAllocator* allocator);
    VkMat(int w, int h, int d, int c, VkBufferMemory* data, size_t elemsize, int elempack,
          VkAllocator* allocator);
    VkMat(int w, int h, int d, int c, VkBufferMemory* data, size_t elemsize, int elempack, int n,
          VkAllocator* allocator);
    VkMat(const Shape& shape, VkAllocator* allocator);
    VkMat(const VkMat& m);
    ~VkMat();
    VkMat& operator=(const VkMat& m);

    // Makes memory of its own, uninitialised; keeps the memory if nothing changes. The type follows
    // from elemsize / elempack (4: f32, 2: f16, else s8), unless a Shape gives it.
    void create(int w, size_t elemsize, VkAllocator* allocator);
    void create(int w, int h, size_t elemsize, VkAllocator* allocator);
    void create(int w, int h, int c, size_t elemsize, VkAllocator* allocator);
    void create(int w, int h, int d, int c, size_t elemsize, VkAllocator* allocator);
    void create(int w, size_t elemsize, int elempack, VkAllocator* allocator);
    void create(int w, int h, size_t elemsize, int elempack, VkAllocator* allocator);
    void create(int w, int h, int c, size_t elemsize, int elempack, VkAllocator* allocator);
    void create(int w, int h, int d, int c, size_t elemsize, int elempack, VkAllocator* allocator);
    void create(int w, size_t elemsize, int elempack, int n, VkAllocator* allocator);
    void create(int w, int h, size_t elemsize, int elempack, int n, VkAllocator* allocator);
    void create(int w, int h, int c, size_t elemsize, int elempack, int n, VkAllocator* allocator);
    void create(int w, int h, int d, int c, size_t elemsize, int elempack, int n,
                VkAllocator* allocator);
    void create(const Shape& shape, VkAllocator* allocator);
    void create_like(const Mat& m, VkAllocator* allocator);
    void create_like(const VkMat& m, VkAllocator* allocator);
    // With n items.
    void create_like(const Mat& m, int n, VkAllocator* allocator);
    void create_like(const VkMat& m, int n, VkAllocator* allocator);

    void addref();
    void release();

    bool empty() const { return data == 0 || total() == 0; }
    // Elements from the first to the last, gaps between items included; and their bytes.
    size_t total() const { return n > 1 ? nstep * n : cstep * c; }
    size_t bytes() const { return total() * elemsize; }
    int elembits() const { return elempack ? (int)elemsize * 8 / elempack : 0; }
    // The size: as a Mat without values, and in scalars with the type.
    Mat shape() const;
    Shape logical_shape() const;
    // Items b to b + items - 1, in the same memory.
    VkMat batch_range(int b, int items) const;
    VkMat batch(int b) const { return batch_range(b, 1); }
    // Where the host sees it (staging memory); null, and an empty Mat, if it does not. The Mat is
    // valid as long as this VkMat.
    void* mapped_ptr() const {
        return data && data->mapped_ptr ? (unsigned char*)data->mapped_ptr + offset : 0;
    }
    Mat mapped() const;
    VkBuffer buffer() const { return data ? data->buffer : 0; }
    size_t buffer_offset() const { return data ? data->offset + offset : 0; }
    size_t buffer_capacity() const { return data ? data->capacity : 0; }

    VkBufferMemory* data;
    int* refcount;  // of the block; null for items of another VkMat, which count too
    size_t elemsize;
    int elempack;
    VkAllocator* allocator;
    int dims;
    int w, h, d, c;
    size_t cstep;
    int n;
    size_t nstep;
    size_t offset;  // bytes from the block's begin
    DType dtype;

private:
    void set_sizes(int dims, int w, int h, int d, int c, int n, DType dtype, size_t elemsize,
                   int elempack, size_t item_step);
    void view(int dims, int w, int h, int d, int c, int n, size_t elemsize, int elempack,
              VkBufferMemory* block, VkAllocator* allocator);
    void allocate(int dims, int w, int h, int d, int c, int n, DType dtype, size_t elemsize,
                  int elempack, VkAllocator* allocator, size_t item_alignment = 1);
};

// What programs for ncnn call an image. Its values are in a buffer here too, so that it can be
// copied from and to VkMats and Mats (quoll/command.h), but not be bound to a shader as an image.
// One item only: otherwise it is empty().
class VkImageMat : public VkMat {
public:
    VkImageMat() {}
    using VkMat::VkMat;
    // As VkMat's.
    void create_like(const Mat& m, VkAllocator* allocator);
    void create_like(const VkMat& m, VkAllocator* allocator);
};

}  // namespace quoll

#endif
