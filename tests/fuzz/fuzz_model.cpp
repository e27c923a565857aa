// Hostile weights: a text param up to the first NUL, then its .bin.
#include "harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const uint8_t* end = size ? (const uint8_t*)memchr(data, 0, size) : nullptr;
    if (!end) return 0;
    const size_t left = size - (size_t)(end + 1 - data);
    fuzz::quiet();
    fuzz::LimitedAllocator allocator;
    quoll::Net net;
    fuzz::Variant variant(data, size);
    variant.apply(&net);
    if (net.load_param_mem((const char*)data) != 0) return 0;
    std::vector<uint32_t> aligned(left / 4 + 1);
    std::copy(end + 1, data + size, (uint8_t*)aligned.data());
    const unsigned char* p = (const unsigned char*)aligned.data();
    if (net.load_model(quoll::DataReaderFromMemory(p, left)) != 0) return 0;
    fuzz::run(net, variant, &allocator);
    return 0;
}
