// What the tests on Mats share: scalar access that knows nothing of the library's loops, random
// contents, an allocator that counts and can fail.
#ifndef QUOLL_TESTS_MAT_HELPERS_H
#define QUOLL_TESTS_MAT_HELPERS_H

#include <string.h>

#include <random>
#include <string>
#include <vector>

#include "quoll/allocator.h"
#include "quoll/log.h"
#include "quoll/mat.h"

// The address of the scalar at (c, d, h, w) of batch item b, indices in scalars whatever the pack.
inline unsigned char* scalar_at(const quoll::Mat& m, int b, int c, int d, int h, int w) {
    const int p = m.elempack;
    int& outer = m.dims == 1 ? w : m.dims == 2 ? h : c;
    const int lane = outer % p;
    outer /= p;
    const size_t element = b * m.nstep + c * m.cstep + ((size_t)d * m.h + h) * m.w + w;
    return (unsigned char*)m.data + element * m.elemsize + lane * (m.elemsize / p);
}

inline float& value_at(const quoll::Mat& m, int b, int c, int d, int h, int w) {
    return *(float*)scalar_at(m, b, c, d, h, w);
}

// f(b, c, d, h, w) for every scalar of a Shape.
template <class F>
void for_each_index(const quoll::Shape& s, F f) {
    for (int b = 0; b < s.n; b++)
        for (int c = 0; c < s.c; c++)
            for (int d = 0; d < s.d; d++)
                for (int h = 0; h < s.h; h++)
                    for (int w = 0; w < s.w; w++) f(b, c, d, h, w);
}

// A Mat of random bytes, gaps between channels included.
inline quoll::Mat random_bytes(const quoll::Shape& shape, int elempack, unsigned seed) {
    quoll::Mat m(shape, elempack);
    std::mt19937 random(seed);
    for (size_t i = 0; i < m.total() * m.elemsize; i++) ((unsigned char*)m.data)[i] = random();
    return m;
}

// An f32 Mat of random values in [-scale, scale].
inline quoll::Mat random_values(const quoll::Shape& shape, int elempack, unsigned seed,
                                float scale = 1.f) {
    quoll::Mat m(shape, elempack);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> spread(-scale, scale);
    for (size_t i = 0; i < m.total() * elempack; i++) ((float*)m.data)[i] = spread(random);
    return m;
}

// The number of scalars that differ; -1 when the shapes or dtypes do. Packings may differ.
inline int count_differences(const quoll::Mat& a, const quoll::Mat& b) {
    const quoll::Shape s = a.logical_shape();
    if (a.empty() || s != b.logical_shape()) return -1;
    const size_t size = quoll::dtype_size(s.dtype);
    int count = 0;
    for_each_index(s, [&](int n, int c, int d, int h, int w) {
        count += memcmp(scalar_at(a, n, c, d, h, w), scalar_at(b, n, c, d, h, w), size) != 0;
    });
    return count;
}

// Counts blocks in use and fails from the given request on (counted from 0; -1: never).
class TestAllocator : public quoll::Allocator {
public:
    int requests = 0, in_use = 0, fail_from = -1;

    void* fastMalloc(size_t size) override {
        if (fail_from >= 0 && requests >= fail_from) return nullptr;
        requests++, in_use++;
        return quoll::fast_malloc(size);
    }
    void fastFree(void* ptr) override {
        in_use--;
        quoll::fast_free(ptr);
    }
};

// Collects the messages of the library while it lives.
class LogCapture {
public:
    std::vector<std::string> messages;

    LogCapture() { quoll::set_log_sink(sink, this); }
    ~LogCapture() { quoll::set_log_sink(nullptr, nullptr); }
    bool contains(const char* text) const {
        for (const std::string& m : messages)
            if (m.find(text) != std::string::npos) return true;
        return false;
    }

private:
    static void sink(quoll::LogLevel, const char* message, void* user) {
        ((LogCapture*)user)->messages.push_back(message);
    }
};

#endif
