// Hostile ONNX models: convert, and run what converts.
#include "harness.h"
#include "onnx/convert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet();
    quoll::OnnxResult result;
    if (quoll::convert_onnx(data, size, "", quoll::OnnxOptions(), &result) != 0) return 0;
    fuzz::LimitedAllocator allocator;
    quoll::Net net;
    fuzz::Variant variant(data, size);
    variant.apply(&net);
    if (result.model.make_net(&net) != 0) return 0;
    fuzz::run(net, variant, &allocator);
    return 0;
}
