// Hostile weights: the first byte picks one of the nets of nets.inc, the rest is its .bin.
#include "harness.h"

namespace {
const char* const kNets[] = {
#include "nets.inc"
};
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    fuzz::quiet();
    fuzz::LimitedAllocator allocator;
    quoll::Net net;
    net.opt.num_threads = 1;
    if (net.load_param_mem(kNets[data[0] % (sizeof(kNets) / sizeof(kNets[0]))]) != 0) return 0;
    std::vector<uint32_t> aligned(size / 4 + 1);
    memcpy(aligned.data(), data + 1, size - 1);
    const unsigned char* p = (const unsigned char*)aligned.data();
    if (net.load_model(quoll::DataReaderFromMemory(p, size - 1)) != 0) return 0;
    fuzz::run(net, &allocator);
    return 0;
}
