// Stretches of steps that run for one item of a batch after the other: the answers are those of
// the items, bit for bit, whatever else is asked for, and no blob within holds all items.
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "quoll/net.h"
#include "random_weights.h"

namespace quoll {
namespace {

#ifdef QUOLL_EMULATED_CPU
const int kItems = 3;
#else
const int kItems = 4;
#endif
// A batch of the first blobs is larger than second-level caches.
const Shape kSize(160, 160, 3);

std::string conv(const char* name, const char* inputs, int to, int from, int kernel) {
    const int count = inputs[0] == '2' ? 2 : 1;
    return std::string("Convolution ") + name + " " + std::to_string(count) + " 1 " +
           (inputs + (count == 2 ? 2 : 0)) + " " + name + " 0=" + std::to_string(to) +
           " 1=" + std::to_string(kernel) + " 4=" + std::to_string(kernel / 2) +
           " 5=1 6=" + std::to_string(to * from * kernel * kernel) + "\n";
}

// Large blobs, a sum of two of them, then a product with more weights than values.
std::string layers() {
    return "Input in 0 1 in 0=160 1=160 2=3\n" + conv("a", "in", 16, 3, 3) +
           "Split s 1 2 a a1 a2\n" + conv("b", "a1", 16, 16, 3) +
           "ConvolutionDepthWise d 1 1 b d 0=16 1=3 4=1 5=1 6=144 7=16\n"
           "BinaryOp sum 2 1 d a2 sum 0=0\nReLU r 1 1 sum r\nPooling p 1 1 r p 0=1 1=4 2=4\n" +
           conv("e", "p", 8, 16, 1) +
           "Pooling g 1 1 e g 0=1 4=1\nInnerProduct f 1 1 g f 0=5000 1=1 2=40000\n";
}

class Items : public testing::Test {
protected:
    void load(bool bf16 = false, int threads = 1) {
        net_.opt.use_bf16_storage = bf16;
        net_.opt.num_threads = threads;
        const std::string text = layers();
        const int count = (int)std::count(text.begin(), text.end(), '\n');
        const std::string param = "7767517\n" + std::to_string(count) + " 99\n" + text;
        ASSERT_EQ(0, net_.load_param_mem(param.c_str()));
        ASSERT_EQ(0, net_.load_model(RandomWeights()));
        Shape shape = kSize;
        shape.n = kItems;
        in_ = Mat(shape);
        unsigned state = 1;
        for (int b = 0; b < kItems; b++) {
            Mat item = in_.batch(b);
            for (int q = 0; q < item.c; q++) {
                float* values = item.channel(q);
                for (int i = 0; i < item.w * item.h; i++) {
                    state = state * 1664525u + 1013904223u;
                    values[i] = (float)(state >> 8) / (1 << 24) - .5f;
                }
            }
        }
    }

    // Asks for the blobs in this order.
    std::vector<Mat> run(const Mat& in, const std::vector<std::string>& asked, bool light = true,
                         Allocator* allocator = nullptr) {
        Extractor ex = net_.create_extractor();
        ex.set_light_mode(light);
        if (allocator) ex.set_blob_allocator(allocator);
        EXPECT_EQ(0, ex.input("in", in));
        std::vector<Mat> outs(asked.size());
        for (size_t i = 0; i < asked.size(); i++)
            EXPECT_EQ(0, ex.extract(asked[i].c_str(), outs[i])) << asked[i];
        return outs;
    }

    // Batches are their items, and what a run is that keeps all blobs, layer by layer.
    void compare(const std::vector<std::string>& asked) {
        const std::vector<Mat> batch = run(in_, asked), kept = run(in_, asked, false);
        for (int b = 0; b < kItems; b++) {
            const std::vector<Mat> item = run(in_.batch(b).clone(), asked);
            for (size_t i = 0; i < asked.size(); i++) {
                const std::string what = asked[i] + ", item " + std::to_string(b);
                expect_same(batch[i].batch(b), item[i], what);
                expect_same(batch[i].batch(b), kept[i].batch(b), what);
            }
        }
    }

    static void expect_same(const Mat& a, const Mat& b, const std::string& what) {
        ASSERT_EQ(a.logical_shape(), b.logical_shape()) << what;
        ASSERT_EQ(a.elempack, b.elempack) << what;
        for (int q = 0; q < a.c; q++)
            ASSERT_EQ(0, memcmp(a.channel(q).data, b.channel(q).data,
                                (size_t)a.w * a.h * a.d * a.elemsize))
                << what << ", channel " << q;
    }

    Net net_;
    Mat in_;
};

TEST_F(Items, are_the_same_as_by_themselves) {
    load();
    compare({"f"});
}

TEST_F(Items, are_the_same_in_bf16) {
    load(true);
    compare({"f"});
}

TEST_F(Items, are_the_same_with_two_threads) {
    load(false, 2);
    compare({"f"});
}

TEST_F(Items, blobs_within_can_be_asked_for) {
    load();
    compare({"p", "f"});
    compare({"f", "p"});
    compare({"b", "r", "f", "a"});
}

// The largest block for which it was asked.
class Largest : public Allocator {
public:
    void* fastMalloc(size_t size) override {
        largest = std::max(largest, size);
        return fast_malloc(size);
    }
    void fastFree(void* ptr) override { fast_free(ptr); }
    size_t largest = 0;
};

TEST_F(Items, need_memory_for_one) {
    load();
    Largest one, all;
    run(in_, {"f"}, true, &one);
    run(in_, {"f"}, false, &all);
    const size_t item = (size_t)160 * 160 * 16 * sizeof(float);
    EXPECT_LT(one.largest, 2 * item);
    EXPECT_GE(all.largest, kItems * item);
}

}  // namespace
}  // namespace quoll
