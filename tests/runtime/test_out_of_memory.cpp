// Memory ends at any allocation, small ones too, while whole networks are loaded and run. Each
// operator by itself: tests/layer/layer_test_faults.cpp.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "failing_heap.h"
#include "quoll/allocator.h"
#include "quoll/datareader.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "random_weights.h"

namespace {

using quoll::Mat;

struct Case {
    const char* param;
    const char* weights;  // null: any
    int size, channels, threads;
};

class OutOfMemory : public testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        level_ = quoll::get_log_level();
        quoll::set_log_level(quoll::kLogOff);
        in_.create(GetParam().size, GetParam().size, GetParam().channels);
        in_.fill(0.25f);
    }
    void TearDown() override { quoll::set_log_level(level_); }
    int load(quoll::Net* net) const {
        const Case& c = GetParam();
        if (int status = net->load_param(c.param)) return status;
        return c.weights ? net->load_model(c.weights) : net->load_model(quoll::RandomWeights());
    }
    int run(const quoll::Net& net, Mat* out) const {
        quoll::Extractor ex = net.create_extractor();
        if (int status = ex.input(net.input_names()[0], in_)) return status;
        return ex.extract(net.output_names()[0], *out);
    }
    // Allocations of load and run without a failure, whose answer is `want`.
    long count(Mat* want) const {
        quoll::Net net;
        net.opt.num_threads = GetParam().threads;
        const long before = quoll::count_allocations();
        const int status = load(&net) || run(net, want);
        const long count = quoll::count_allocations() - before;
        EXPECT_EQ(status, 0) << "run from the source tree";
        return count;
    }
    void expect_same(const Mat& got, const Mat& want) const {
        ASSERT_EQ(got.w, want.w);
        for (int i = 0; i < want.w; i++) ASSERT_EQ(got[i], want[i]) << i;
    }
    Mat in_;

private:
    quoll::LogLevel level_;
};

TEST_P(OutOfMemory, IsAnErrorAndTheNextRunWorks) {
    Mat want;
    const long allocations = count(&want);
    ASSERT_GT(allocations, 100);
    // All of a small network, of others so many, spread from the first to the last.
    const char* const most = getenv("QUOLL_ALLOCATIONS");
    const long tried =
        allocations < 2000 ? allocations : std::min(allocations, most ? atol(most) : 60L);
    for (long i = 0; i < tried; i++) {
        const long k = allocations * i / tried;
        SCOPED_TRACE("allocation " + std::to_string(k) + " of " + std::to_string(allocations));
        quoll::Net net;
        net.opt.num_threads = GetParam().threads;
        Mat got;
        const quoll::FailingHeap heap(k);
        const int loaded = load(&net), status = loaded ? loaded : run(net, &got);
        heap.mend();
        ASSERT_LE(status, 0);
        if (status == 0) expect_same(got, want);  // it could do without
        if (loaded != 0) {
            ASSERT_TRUE(net.layers().empty());
            ASSERT_EQ(load(&net), 0);
        }
        ASSERT_EQ(run(net, &got), 0);
        expect_same(got, want);
        if (HasFatalFailure()) return;
    }
}

TEST(NoMemory, AnExtractorSaysSoInAllFunctions) {
    quoll::Net net;
    ASSERT_EQ(net.load_param("models/digits/digits.param"), 0) << "run from the source tree";
    ASSERT_EQ(net.load_model("models/digits/digits.bin"), 0);
    Mat in(8, 8, 1), out;
    in.fill(0.25f);
    const quoll::FailingHeap heap(0);
    quoll::Extractor ex = net.create_extractor();
    EXPECT_TRUE(heap.failed());
    heap.mend();
    const quoll::Extractor copy = ex;
    for (quoll::Extractor each : {ex, copy}) {
        EXPECT_EQ(each.input("data", in), quoll::kOutOfMemory);
        EXPECT_EQ(each.input(0, in), quoll::kOutOfMemory);
        EXPECT_EQ(each.extract("prob", out), quoll::kOutOfMemory);
        EXPECT_EQ(each.extract(1, out), quoll::kOutOfMemory);
        each.set_light_mode(false);
        each.set_num_threads(2);
        each.set_blob_allocator(nullptr);
        each.set_workspace_allocator(nullptr);
        each.clear();
    }
    ex = net.create_extractor();
    EXPECT_EQ(ex.input(net.input_names()[0], in), 0);
    EXPECT_EQ(ex.extract(net.output_names()[0], out), 0);
}

// Calls f with each allocation failing in turn, until none does; f says whether what it did is
// right or, where `failed` holds, an error.
template <class F>
void fail_each(const char* what, const F& f) {
    for (long k = 0; k < 1000; k++) {
        const quoll::FailingHeap heap(k);
        bool right = false;
        try {
            right = f(heap);
        } catch (...) {
            ADD_FAILURE() << what << " throws";
        }
        const bool failed = heap.failed();
        heap.mend();
        ASSERT_TRUE(right) << what << ", allocation " << k;
        if (failed) continue;
        EXPECT_GT(k, 0) << what << " allocates nothing";
        return;
    }
    ADD_FAILURE() << what << " does not end";
}

// Functions beside Net and Extractor: ParamDict, create_layer, those of Mat.
TEST(NoMemory, PublicFunctionsSaySo) {
    using quoll::FailingHeap;
    const char* const text = "0=3 1=0.5 -23302=4,1,2,3,4 3=\"a string that is not a short one\"\n";
    quoll::ParamDict params;
    fail_each("load_param", [&](const FailingHeap& heap) {
        params.clear();
        const unsigned char* from = (const unsigned char*)text;
        const int status = params.load_param(quoll::DataReaderFromMemory(from, strlen(text)));
        return heap.failed() ? status == quoll::kOutOfMemory || status == 0
                             : status == 0 && params.get(0, 0) == 3;
    });
    for (const char* type : {"Convolution", "LSTM", "Softmax"})
        fail_each(type, [&](const FailingHeap& heap) {
            quoll::Layer* const layer = quoll::create_layer(type);
            const bool made = layer != nullptr;
            delete layer;
            return made || heap.failed();
        });
    Mat image(24, 20, 8);
    image.fill(0.5f);
    const std::vector<unsigned char> pixels(24 * 20 * 3, 7);
    quoll::Option opt;
    opt.num_threads = 2;
    const struct {
        const char* name;
        void (*make)(const Mat& in, const unsigned char* pixels, const quoll::Option& opt,
                     Mat* out);
    } functions[] = {
        {"resize_bilinear", [](const Mat& in, const unsigned char*, const quoll::Option& o,
                               Mat* out) { quoll::resize_bilinear(in, *out, 31, 17, o); }},
        {"resize_bicubic", [](const Mat& in, const unsigned char*, const quoll::Option& o,
                              Mat* out) { quoll::resize_bicubic(in, *out, 31, 17, o); }},
        {"copy_make_border",
         [](const Mat& in, const unsigned char*, const quoll::Option& o, Mat* out) {
             quoll::copy_make_border(in, *out, 1, 2, 3, 4, 0, 1.f, o);
         }},
        {"convert_packing", [](const Mat& in, const unsigned char*, const quoll::Option& o,
                               Mat* out) { quoll::convert_packing(in, *out, 4, o); }},
        {"cast", [](const Mat& in, const unsigned char*, const quoll::Option& o,
                    Mat* out) { quoll::cast_float32_to_float16(in, *out, o); }},
        {"clone", [](const Mat& in, const unsigned char*, const quoll::Option&,
                     Mat* out) { *out = in.clone(); }},
        {"from_pixels_resize",
         [](const Mat&, const unsigned char* p, const quoll::Option&, Mat* out) {
             *out = Mat::from_pixels_resize(p, Mat::PIXEL_RGB, 24, 20, 31, 17);
         }},
    };
    for (const auto& f : functions)
        fail_each(f.name, [&](const FailingHeap& heap) {
            Mat out;
            f.make(image, pixels.data(), opt, &out);
            return heap.failed() || !out.empty();
        });
}

TEST(NoMemory, ObjectsWithMemoryOfTheirOwnThrow) {
    const auto refused = [](void (*make)()) {
        const quoll::FailingHeap heap(0);
        bool thrown = false;
        try {
            make();
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        return thrown;
    };
    EXPECT_TRUE(refused([] { quoll::Net net; }));
    EXPECT_TRUE(refused([] { quoll::ParamDict params; }));
    static quoll::ParamDict params;
    EXPECT_TRUE(refused([] { params.set(0, 1); }));
    EXPECT_TRUE(refused([] { quoll::PoolAllocator pool; }));
    EXPECT_TRUE(refused([] { quoll::UnlockedPoolAllocator pool; }));
}

void limit_memory() {
    const rlimit limit = {1 << 30, 1 << 30};
    setrlimit(RLIMIT_AS, &limit);
}

// Emulators have an address space of their own.
bool memory_can_be_limited() {
    const pid_t child = fork();
    if (child == 0) {
        limit_memory();
        void* p = mmap(nullptr, (size_t)2 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        _exit(p == MAP_FAILED ? 0 : 1);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

// A few bytes of param that ask for gigabytes, where a process may have one.
void exit_with_status_of_a_huge_blob() {
    limit_memory();
    quoll::set_log_level(quoll::kLogOff);
    quoll::Net net;
    const char* const text =
        "7767517\n2 2\nInput in 0 1 in 0=128\nPadding p 1 1 in out 2=500000000 3=2\n";
    const unsigned char nothing[4] = {};
    if (net.load_param_mem(text) != 0) _exit(1);
    const unsigned char* p = nothing;
    if (net.load_model(quoll::DataReaderFromMemory(p, 0)) != 0) _exit(2);
    Mat in(128), out;
    in.fill(1.f);
    quoll::Extractor ex = net.create_extractor();
    if (ex.input("in", in) != 0) _exit(3);
    _exit(ex.extract("out", out) == quoll::kOutOfMemory ? 0 : 4);
}

#ifndef QUOLL_SANITIZED
TEST(HugeBlob, IsAnError) {
    if (!memory_can_be_limited()) GTEST_SKIP() << "the memory of a process cannot be limited here";
    EXPECT_EXIT(exit_with_status_of_a_huge_blob(), testing::ExitedWithCode(0), "");
}
#endif

TEST(HugeBlob, MoreThanTheMachineHasIsRefusedUntouched) {
    const size_t pages = (size_t)sysconf(_SC_PHYS_PAGES), page = (size_t)sysconf(_SC_PAGESIZE);
    EXPECT_EQ(quoll::fast_malloc(pages * page + 1), nullptr);
}

const Case kCases[] = {
    {"models/digits/digits.param", "models/digits/digits.bin", 8, 1, 1},
    {"benchmark/models/squeezenet.param", nullptr, 32, 3, 2},
    {"benchmark/models/mobilenet_v3.param", nullptr, 32, 3, 1},
    {"benchmark/models/shufflenet_v2.param", nullptr, 32, 3, 2},
};
INSTANTIATE_TEST_SUITE_P(Networks, OutOfMemory, testing::ValuesIn(kCases));

}  // namespace
