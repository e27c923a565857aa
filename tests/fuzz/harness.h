// Common to the fuzz targets: loading a net from hostile bytes and running whatever loads.
#ifndef QUOLL_TESTS_FUZZ_HARNESS_H
#define QUOLL_TESTS_FUZZ_HARNESS_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "quoll/datareader.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "runtime/cpu_features.h"

namespace fuzz {

// The case that runs, which a crash, and one that takes longer than alarm() says, prints.
inline std::string current_case;

inline void print_case(int signal_number) {
    if (write(2, current_case.data(), current_case.size()) < 0) _exit(2);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

inline void print_case_of_crashes() {
    for (int s : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM}) signal(s, print_case);
}

// Serves blobs up to a total that a small model can justify, then fails: a hostile size must come
// back as an error, and must not eat the fuzzer's memory.
class LimitedAllocator : public quoll::Allocator {
public:
    explicit LimitedAllocator(size_t limit = 8 << 20) : limit_(limit) {}
    void* fastMalloc(size_t size) override {
        if (size > limit_) return nullptr;
        return quoll::fast_malloc(size);
    }
    void fastFree(void* ptr) override { quoll::fast_free(ptr); }

private:
    const size_t limit_;
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

// How an input is run: it follows from the input, so that findings repeat.
class Variant {
public:
    Variant(const uint8_t* data, size_t size) {
        for (size_t i = 0; i < size; i++) bits_ = (bits_ ^ data[i]) * 1099511628211u;
        bits_ ^= bits_ >> 29;
    }
    // Before the Net loads.
    void apply(quoll::Net* net) {
        const char* const kLevels[] = {nullptr, "scalar", "sse4", "avx2"};
        quoll::set_cpu_mask(kLevels[take(4)]);
        quoll::Option& opt = net->opt;
        opt.num_threads = 1 + (int)take(2);
        const unsigned storage = take(3);
        opt.use_fp16_storage = storage == 1;
        opt.use_bf16_storage = storage == 2;
        opt.use_graph_fusion = take(4) != 0;
        opt.use_reference_layers = take(8) == 0;
        opt.use_packing_layout = take(4) != 0;
        opt.use_winograd_convolution = take(2) != 0;
        opt.lightmode = take(4) != 0;
        batch_ = take(4) == 0 ? 2 : 1;
        check_finite_ = take(8) == 0;
        opt.check_finite = check_finite_;
    }
    int batch() const { return batch_; }

private:
    unsigned take(unsigned choices) {
        const unsigned chosen = (unsigned)(bits_ % choices);
        bits_ /= choices;
        return chosen;
    }
    uint64_t bits_ = 14695981039346656037u;
    int batch_ = 1;
    bool check_finite_ = false;
};

// An answer: what extract said, and its Mat.
struct Answer {
    int status;
    quoll::Mat blob;
};

// Fills an item of a batch with -3 to 3 (0 to 6 where there is no sign), in the type that it has.
inline void fill_item(const quoll::Mat& item) {
    const bool is_unsigned = item.dtype == quoll::DType::u8;
    for (size_t i = 0; i < item.total(); i++) {
        const int value = (int)(i % 7) - (is_unsigned ? 0 : 3);
        if (item.dtype == quoll::DType::f32)
            ((float*)item.data)[i] = (float)value;
        else if (item.dtype == quoll::DType::s32)
            ((int32_t*)item.data)[i] = value;
        else
            memset((char*)item.data + i * item.elemsize, value, item.elemsize);
    }
}

// Feeds every input with a small blob near its hinted size and asks for every output. `grow` is
// added to the widths. False if inputs cannot be given.
inline bool run(const quoll::Net& net, quoll::Allocator* allocator, int threads, int batch,
                int grow, std::vector<Answer>* answers) {
    quoll::Extractor ex = net.create_extractor();
    ex.set_num_threads(threads);
    ex.set_blob_allocator(allocator);
    ex.set_workspace_allocator(allocator);
    for (int id : net.input_indexes()) {
        std::vector<quoll::Shape> out;
        const quoll::Layer* layer = net.layers()[net.blobs()[id].producer];
        quoll::Shape s(6, 5, 8);
        if (layer->infer_shapes({}, out) == 0 && !out.empty() && out[0].dims) s = out[0];
        s.w = bounded(s.w, 6) + grow, s.h = bounded(s.h, 1), s.d = bounded(s.d, 1);
        s.c = bounded(s.c, 1), s.n = batch;
        quoll::Mat m(s);
        if (m.empty()) return false;
        for (int b = 0; b < m.n; b++) fill_item(m.batch(b));
        if (ex.input(id, m) != 0) return false;
    }
    for (int id : net.output_indexes()) {
        answers->push_back({});
        answers->back().status = ex.extract(id, answers->back().blob);
    }
    return true;
}

inline bool same_bits(const quoll::Mat& a, const quoll::Mat& b) {
    if (a.dims != b.dims || a.n != b.n || a.dtype != b.dtype || a.elempack != b.elempack ||
        !(a.logical_shape() == b.logical_shape()))
        return false;
    if (a.empty()) return b.empty();
    for (int i = 0; i < a.n; i++)
        for (int q = 0; q < a.c; q++) {
            const quoll::Mat x = a.batch(i).channel(q), y = b.batch(i).channel(q);
            const size_t count = (size_t)a.w * a.h * a.d * a.elempack;
            if (memcmp(x.data, y.data, count * (a.elemsize / a.elempack)) == 0) continue;
            if (a.dtype != quoll::DType::f32) return false;
            const float *from = x, *to = y;
            for (size_t k = 0; k < count; k++)  // any NaN is as good as another
                if (memcmp(from + k, to + k, 4) != 0 && !(from[k] != from[k] && to[k] != to[k]))
                    return false;
        }
    return true;
}

inline void expect_same(const std::vector<Answer>& a, const std::vector<Answer>& b,
                        const char* what) {
    bool same = a.size() == b.size();
    for (size_t i = 0; same && i < a.size(); i++)
        same = a[i].status == b[i].status && (a[i].status != 0 || same_bits(a[i].blob, b[i].blob));
    if (same) return;
    fprintf(stderr, "answers differ: %s\n", what);
    abort();
}

// Runs a net as the variant says. The same bits must come out with any number of threads, and
// whatever size ran in between.
inline void run(const quoll::Net& net, const Variant& variant, quoll::Allocator* allocator) {
    std::vector<Answer> one, three, other, again;
    if (!run(net, allocator, 1, variant.batch(), 0, &one)) return;
    run(net, allocator, 3, variant.batch(), 0, &three);
    expect_same(one, three, "one thread and three");
    run(net, allocator, 2, 1, 1, &other);
    run(net, allocator, 1, variant.batch(), 0, &again);
    expect_same(one, again, "before another size and after it");
}

// The input as a file that has a path.
class File {
public:
    File(const uint8_t* data, size_t size) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
        if (fd_ < 0 || write(fd_, data, size) != (ssize_t)size) abort();
    }
    ~File() { close(fd_); }
    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    File(const File&);
    File& operator=(const File&);
    int fd_;
};

inline void quiet() {
    quoll::set_log_sink([](quoll::LogLevel, const char*, void*) {}, nullptr);
}

}  // namespace fuzz

#endif
