// Hostile binary params: load, give weights that end early, run what loads.
#include "harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet();
    fuzz::LimitedAllocator allocator;
    quoll::Net net;
    fuzz::Variant variant(data, size);
    variant.apply(&net);
    std::vector<uint32_t> aligned(size / 4 + 1);
    if (size) memcpy(aligned.data(), data, size);
    const unsigned char* p = (const unsigned char*)aligned.data();
    if (net.load_param_bin(quoll::DataReaderFromMemory(p, size)) != 0) return 0;
    if (net.load_model(fuzz::ShortWeights()) != 0) return 0;
    fuzz::run(net, variant, &allocator);
    return 0;
}
