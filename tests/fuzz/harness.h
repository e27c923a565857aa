// What the fuzz targets share: loading a net from hostile bytes and running whatever loads.
#ifndef QUOLL_TESTS_FUZZ_HARNESS_H
#define QUOLL_TESTS_FUZZ_HARNESS_H

#include <stdint.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "quoll/datareader.h"
#include "quoll/log.h"
#include "quoll/net.h"

namespace fuzz {

// Serves blobs up to a total that a small model can justify, then fails: a hostile size must come back
// as an error, and must not eat the fuzzer's memory.
class LimitedAllocator : public quoll::Allocator {
public:
    void* fastMalloc(size_t size) override {
        if (size > kLimit) return nullptr;
        return quoll::fast_malloc(size);
    }
    void fastFree(void* ptr) override { quoll::fast_free(ptr); }

private:
    static const size_t kLimit = 8 << 20;
};

// A weight source that ends: zeros for tags and small values for the rest.
class ShortWeights : public quoll::DataReader {
public:
    size_t read(void* buf, size_t size) const override {
        const size_t count = std::min(size, left_);
        memset(buf, 0, count);
        if (size > 4)
            for (size_t i = 0; i + 4 <= count; i += 4) memcpy((char*)buf + i, &kValue, 4);
        left_ -= count;
        return count;
    }
    size_t remaining() const override { return left_; }

private:
    static constexpr float kValue = 0.25f;
    mutable size_t left_ = 1 << 18;
};

inline int bounded(int v, int def) { return v <= 0 ? def : std::min(v, 24); }

// Feeds every input with a small blob near its hinted size and asks for every output.
inline void run(const quoll::Net& net, quoll::Allocator* allocator) {
    quoll::Extractor ex = net.create_extractor();
    ex.set_num_threads(1);
    ex.set_blob_allocator(allocator);
    ex.set_workspace_allocator(allocator);
    for (int id : net.input_indexes()) {
        std::vector<quoll::Shape> out;
        const quoll::Layer* layer = net.layers()[net.blobs()[id].producer];
        quoll::Shape s(6, 5, 8);
        if (layer->infer_shapes({}, out) == 0 && !out.empty() && out[0].dims) s = out[0];
        s.w = bounded(s.w, 6), s.h = bounded(s.h, 1), s.d = bounded(s.d, 1), s.c = bounded(s.c, 1);
        quoll::Mat m(s);
        if (m.empty()) return;
        for (size_t i = 0; i < m.total(); i++) m[i] = (float)(i % 7) - 3.f;
        if (ex.input(id, m) != 0) return;
    }
    for (int id : net.output_indexes()) {
        quoll::Mat m;
        if (ex.extract(id, m) != 0) continue;
        float sum = 0;  // touch what came out
        if (!m.empty() && m.dtype == quoll::DType::f32)
            for (int q = 0; q < m.c; q++) sum += m.row<float>(0)[q * m.cstep];
        volatile float sink = sum;
        (void)sink;
    }
}

inline void quiet() { quoll::set_log_sink([](quoll::LogLevel, const char*, void*) {}, nullptr); }

}  // namespace fuzz

#endif
