// Hostile ONNX models: convert, and run what converts.
#include "harness.h"
#include "onnx/convert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet();
    quoll::OnnxResult result;
    if (quoll::convert_onnx(data, size, "", quoll::OnnxOptions(), &result) != 0) return 0;
    fuzz::LimitedAllocator allocator;
    quoll::Net net;
    net.opt.num_threads = 1;
    if (result.model.make_net(&net) != 0) return 0;
    fuzz::run(net, &allocator);
    return 0;
}
