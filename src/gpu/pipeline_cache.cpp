// Pipelines as a driver compiled them, outside of the process.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "gpu/pipeline.h"
#include "gpu/tuning.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/open_file.h"

namespace quoll {

namespace {

// Comes before the driver's data. All fields have to be the same as here and now: drivers check the
// header of their own data, but not all of them check the rest.
struct Header {
    char magic[8];
    char version[16];  // of the library
    uint32_t vendor, device, driver_version, api_version;
    unsigned char cache_uuid[16];  // of the driver
    uint64_t shaders;              // hash of all of them
    uint64_t bytes, checksum;      // of the data behind
    uint64_t tuned;                // bytes at its end that are a TuningTable's
};

const char kMagic[8] = {'q', 'u', 'o', 'l', 'l', 'p', 'c', '2'};

// FNV-1a, of words.
uint64_t hash(uint64_t seed, const void* data, size_t bytes) {
    const unsigned char* p = (const unsigned char*)data;
    uint64_t h = seed;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * 0x100000001b3ull;
        h ^= h >> 29;
    }
    for (; bytes > 0; p++, bytes--) h = (h ^ *p) * 0x100000001b3ull;
    return h;
}
const uint64_t kSeed = 0xcbf29ce484222325ull;

uint64_t hash_of_shaders() {
    uint64_t h = kSeed;
    for (int i = 0; i < kShaderCount; i++) {
        for (Storage storage : {Storage::f32, Storage::f16}) {
            const ShaderCode code = shader_code((Shader)i, storage);
            h = hash(h, &code.bytes, sizeof(code.bytes));
            if (code.words) h = hash(h, code.packed, code.bytes);
        }
    }
    return h;
}

Header header_of(const GpuDevice& device, const unsigned char* data, size_t bytes, uint64_t tuned) {
    static const uint64_t shaders = hash_of_shaders();
    Header h;
    memset(&h, 0, sizeof(h));
    memcpy(h.magic, kMagic, sizeof(kMagic));
    strncpy(h.version, QUOLL_VERSION_STRING, sizeof(h.version) - 1);
    const GpuInfo& info = device.info();
    h.vendor = info.vendor_id(), h.device = info.device_id();
    h.driver_version = info.driver_version(), h.api_version = info.api_version();
    memcpy(h.cache_uuid, device.cache_uuid(), sizeof(h.cache_uuid));
    h.shaders = shaders;
    h.bytes = bytes, h.tuned = tuned;
    h.checksum = hash(hash(kSeed, &tuned, sizeof(tuned)), data, bytes);
    return h;
}

// Why the cache cannot be used, null if it can.
const char* mismatch(const Header& h, const Header& here, size_t bytes) {
    if (memcmp(h.magic, kMagic, sizeof(kMagic)) != 0) return "it is no pipeline cache";
    if (memcmp(h.version, here.version, sizeof(h.version)) != 0 || h.shaders != here.shaders)
        return "it is of another version of the library";
    if (h.vendor != here.vendor || h.device != here.device) return "it is of another device";
    if (h.driver_version != here.driver_version || h.api_version != here.api_version ||
        memcmp(h.cache_uuid, here.cache_uuid, sizeof(h.cache_uuid)) != 0)
        return "it is of another driver";
    if (h.bytes != bytes) return "it is cut off, or something follows it";
    if (h.checksum != here.checksum || h.tuned > h.bytes) return "it is damaged";
    return nullptr;
}

// `name`: of a file, for messages.
int load(const GpuDevice& device, const unsigned char* data, size_t size, const char* name) {
    Header h;
    const char* wrong = size < sizeof(h) ? "it is no pipeline cache" : nullptr;
    if (!wrong) {
        memcpy(&h, data, sizeof(h));
        const size_t bytes = size - sizeof(h);
        wrong = mismatch(h, header_of(device, data + sizeof(h), bytes, h.tuned), bytes);
    }
    if (!wrong && !device.tuning().merge(data + size - h.tuned, h.tuned)) wrong = "it is damaged";
    if (!wrong) return device.pipelines().merge(data + sizeof(h), h.bytes - h.tuned);
    QUOLL_LOGW("Vulkan: pipeline cache %s is not used: %s", name, wrong);
    return kError;
}

std::shared_ptr<GpuDevice> device_of(const VulkanDevice* vkdev) {
    const std::shared_ptr<GpuDevice> device = vkdev ? vkdev->gpu() : nullptr;
    if (!device) QUOLL_LOGE("Vulkan: a pipeline cache of no device");
    return device;
}

#if QUOLL_STDIO

int read_rest(FILE* file, std::vector<unsigned char>* data) {
    unsigned char part[65536];
    while (const size_t count = fread(part, 1, sizeof(part), file))
        data->insert(data->end(), part, part + count);
    return ferror(file) ? -EIO : (int)kOk;
}

int read_file(const char* path, std::vector<unsigned char>* data) {
    FILE* file = open_to_read(path);
    if (!file) return errno == ENOENT ? (int)kError : -errno;
    const int status = read_rest(file, data);
    fclose(file);
    return status;
}

int fail_file(const char* what, const char* path) {
    QUOLL_LOGE("Vulkan: pipeline cache %s: %s: %s", path, what, strerror(errno));
    return kError;
}

// Another process may write to the same path: so the file gets a name of its own, and is renamed in
// the end.
int write_file(const std::string& path, const std::vector<unsigned char>& data) {
    const std::string part = path + "." + std::to_string((unsigned long long)getpid()) + "-" +
                             std::to_string((unsigned long long)(uintptr_t)&data) + ".part";
    FILE* file = fopen(part.c_str(), "wb");
    if (!file) return fail_file("cannot be written", part.c_str());
    const bool written = fwrite(data.data(), 1, data.size(), file) == data.size();
    if ((fclose(file) == 0) & written && rename(part.c_str(), path.c_str()) == 0) return kOk;
    fail_file("cannot be written", path.c_str());
    remove(part.c_str());
    return kError;
}

#endif

}  // namespace

int PipelineCache::load_cache(const unsigned char* data, size_t size) const {
    const std::shared_ptr<GpuDevice> device = device_of(vkdev);
    return device ? load(*device, data, size, "in memory") : (int)kError;
}

int PipelineCache::save_cache(std::vector<unsigned char>* data) const {
    const std::shared_ptr<GpuDevice> device = device_of(vkdev);
    std::vector<unsigned char> made;
    if (!device) return kError;
    QUOLL_RETURN_IF_ERROR(device->pipelines().save(&made));
    const std::vector<unsigned char> tuned = device->tuning().save();
    made.insert(made.end(), tuned.begin(), tuned.end());
    const Header h = header_of(*device, made.data(), made.size(), tuned.size());
    data->assign((const unsigned char*)&h, (const unsigned char*)(&h + 1));
    data->insert(data->end(), made.begin(), made.end());
    return kOk;
}

size_t PipelineCache::size() const {
    const std::shared_ptr<GpuDevice> device = device_of(vkdev);
    return device ? device->pipelines().count() : 0;
}

void PipelineCache::set_tuning(bool on) const {
    const std::shared_ptr<GpuDevice> device = device_of(vkdev);
    if (device) device->tuning().set_on(on);
}

#if QUOLL_STDIO

int PipelineCache::load_cache(FILE* file) const {
    std::vector<unsigned char> data;
    if (read_rest(file, &data) == kOk) return load_cache(data);
    return fail_file("cannot be read", "that is open");
}

int PipelineCache::save_cache(FILE* file) const {
    std::vector<unsigned char> data;
    QUOLL_RETURN_IF_ERROR(save_cache(&data));
    if (fwrite(data.data(), 1, data.size(), file) == data.size()) return kOk;
    return fail_file("cannot be written", "that is open");
}

int PipelineCache::load_cache(const char* path) const {
    const std::shared_ptr<GpuDevice> device = device_of(vkdev);
    if (!device) return kError;
    std::vector<unsigned char> data;
    errno = 0;
    const int status = read_file(path, &data);
    if (status != kOk && errno != ENOENT) fail_file("cannot be read", path);
    return status == kOk ? load(*device, data.data(), data.size(), path) : (int)kError;
}

int PipelineCache::save_cache(const char* path) const {
    load_cache(path);  // what does not fit is said, and replaced
    std::vector<unsigned char> data;
    QUOLL_RETURN_IF_ERROR(save_cache(&data));
    return write_file(path, data);
}

#endif

}  // namespace quoll
