// Hostile Caffe models: a prototxt up to the first NUL, then its caffemodel.
#include "caffe/converter.h"
#include "harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const uint8_t* end = (const uint8_t*)memchr(data, 0, size);
    const size_t text = end ? (size_t)(end - data) : size, rest = end ? text + 1 : size;
    fuzz::quiet();
    const fuzz::File prototxt(data, text), caffemodel(data + rest, size - rest);
    caffe::NetParameter source;
    quoll::CaffeWeights weights;
    quoll::CaffeReport report;
    quoll::Model model;
    if (quoll::read_prototxt(prototxt.path(), &source, &report.notes) != 0) return 0;
    if (quoll::read_caffemodel(caffemodel.path(), &weights) != 0) return 0;
    quoll::convert_caffe(source, weights, &model, &report);
    if (!report.errors.empty()) return 0;
    fuzz::LimitedAllocator allocator;
    quoll::Net net;
    fuzz::Variant variant(data, size);
    variant.apply(&net);
    if (model.make_net(&net) != 0) return 0;
    fuzz::run(net, variant, &allocator);
    return 0;
}
