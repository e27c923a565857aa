// Nets whose blobs have 16 bits, and constants.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "net_test.h"

namespace {

using namespace net_test;

TEST_F(NetTest, HalfStorage) {
    for (bool half : {true, false}) {
        Net net;
        net.opt.use_fp16_storage = half;
        net.opt.use_bf16_storage = !half;
        register_layers(&net);
        ASSERT_EQ(load_text(&net, kDiamond), 0);
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("data", vector_of({1.f})), 0);
        Mat out;
        ASSERT_EQ(ex.extract("b", out, 1), 0);
        EXPECT_EQ(out.dtype, half ? quoll::DType::f16 : quoll::DType::bf16);
        ASSERT_EQ(ex.extract("b", out), 0);
        EXPECT_EQ(out.dtype, quoll::DType::f32);
        EXPECT_EQ(out[0], 12.f);
    }
}

TEST_F(NetTest, InputsBesideStoredBlobs) {
    for (bool half : {true, false})
        for (const char* layer : {"BinaryOp b 2 1 a x y", "Eltwise b 2 1 x a y 0=1"}) {
            Net net;
            net.opt.use_fp16_storage = half;
            net.opt.use_bf16_storage = !half;
            const std::string text =
                std::string("7767517\n3 3\nInput i 0 1 x\nReLU r 1 1 x a\n") + layer + "\n";
            ASSERT_EQ(load_text(&net, text.c_str()), 0);
            Extractor ex = net.create_extractor();
            ASSERT_EQ(ex.input("x", vector_of({-1.f, 2.f})), 0);
            Mat out;
            ASSERT_EQ(ex.extract("y", out), 0) << layer;
            EXPECT_EQ(out[0], -1.f);
            EXPECT_EQ(out[1], 4.f);
        }
}

TEST_F(NetTest, UntypedMatsAreOfTheStoredType) {
    Net net;
    net.opt.use_bf16_storage = true;
    ASSERT_EQ(net.load_param_mem("7767517\n2 2\nInput i 0 1 x\nAbsVal a 1 1 x y\n"), 0);
    for (const bool typed : {false, true}) {
        Mat in(2, (size_t)2u);
        if (typed) in.create(quoll::Shape(2, quoll::DType::f16));
        unsigned short* const v = in;
        v[0] = v[1] = quoll::float32_to_bfloat16(-3.f);
        Extractor ex = net.create_extractor();
        ASSERT_EQ(ex.input("x", in), 0);
        Mat out;
        ASSERT_EQ(ex.extract("y", out), 0);
        EXPECT_EQ(out[0] == 3.f, !typed) << out[0];
    }
}

// What a program does with its outputs is no business of the next run's.
TEST_F(NetTest, AnExtractedWeightIsACopy) {
    const char* const text =
        "7767517\n4 5\nMemoryData m 0 1 m 0=2 1=3\nSplit s 1 2 m a b\n"
        "Reshape r 1 1 a c 0=6\nSlice t 1 1 b d -23300=1,-233\n";
    const float values[] = {1, 2, 3, 4, 5, 6};
    const std::string weights((const char*)values, sizeof(values));
    for (bool fused : {true, false}) {
        Net net;
        net.opt.use_graph_fusion = fused;
        ASSERT_EQ(load_text(&net, text, weights), 0) << g_log;
        for (int run = 0; run < 2; run++)
            for (const char* blob : {"m", "a", "c", "d"}) {
                Extractor ex = net.create_extractor();
                Mat out;
                if (!fused || net.blobs()[net.find_blob_index_by_name(blob)].producer >= 0) {
                    ASSERT_EQ(ex.extract(blob, out), 0) << blob << g_log;
                    for (int i = 0; i < 6; i++) EXPECT_EQ(out[i], values[i]) << blob;
                    out.fill(-9.f);
                }
            }
    }
}

// What a net of 16-bit blobs holds of a constant is made once, not in each run, and is no business
// of the program's either. What f16 cannot hold stays f32.
TEST_F(NetTest, AConstantIsNarrowedOnce) {
    const char* const text =
        "7767517\n3 3\nInput x 0 1 x\nMemoryData m 0 1 m 0=2 1=3\nBinaryOp y 2 1 x m y 0=0\n";
    class Watch : public quoll::LayerObserver {
    public:
        void before(const quoll::Layer&) override {}
        void after(const quoll::Layer& layer, const std::vector<Mat>& outputs) override {
            if (layer.type == "MemoryData") seen.push_back(outputs[0]);
        }
        std::vector<Mat> seen;
    };
    for (bool large : {false, true})
        for (bool bf16 : {false, true}) {
            const float values[] = {1, 2, 3, 4, 5, large ? 1e6f : 6.f};
            Net net;
            (bf16 ? net.opt.use_bf16_storage : net.opt.use_fp16_storage) = true;
            const std::string weights((const char*)values, sizeof(values));
            ASSERT_EQ(load_text(&net, text, weights), 0);
            Watch watch;
            for (int run = 0; run < 3; run++) {
                Extractor ex = net.create_extractor();
                ex.set_layer_observer(&watch);
                Mat x(2, 3), y, m;
                x.fill(0.f);
                ASSERT_EQ(ex.input("x", x), 0);
                ASSERT_EQ(ex.extract("y", y), 0);
                for (int i = 0; i < 6; i++) EXPECT_NEAR(y[i], values[i], values[i] / 256);
                ASSERT_EQ(ex.extract("m", m, 1), 0);
                memset(m.data, 0, m.total() * m.elemsize);
            }
            ASSERT_GE(watch.seen.size(), 3u);
            const bool stays = large && !bf16;
            for (const Mat& m : watch.seen) {
                EXPECT_EQ(m.data, watch.seen[0].data);
                EXPECT_EQ(m.dtype, stays  ? quoll::DType::f32
                                   : bf16 ? quoll::DType::bf16
                                          : quoll::DType::f16);
            }
        }
}

// Masks of attention hold the smallest float. It rounds to -infinity in bf16, of which a softmax is
// NaN.
TEST_F(NetTest, FiniteValuesStayFiniteInBf16) {
    const float largest = 3.40282347e38f, infinity = std::numeric_limits<float>::infinity();
    const float values[] = {-largest, largest, infinity, 3.3895e38f};
    const std::string weights((const char*)values, sizeof(values));
    Net net;
    net.opt.use_bf16_storage = true;
    const char* const text =
        "7767517\n4 4\nInput x 0 1 x\nBinaryOp scaled 1 1 x scaled 0=2 1=1 2=-3.40282347e38\n"
        "MemoryData m 0 1 m 0=4\nSoftmax y 1 1 scaled y 0=0 1=1\n";
    ASSERT_EQ(load_text(&net, text, weights), 0);
    Extractor ex = net.create_extractor();
    Mat x(3), y, scaled, m;
    x[0] = x[1] = 1.f, x[2] = infinity;
    ASSERT_EQ(ex.input("x", x), 0);
    ASSERT_EQ(ex.extract("scaled", scaled), 0);
    EXPECT_NEAR(scaled[0], -largest, largest / 200);
    EXPECT_EQ(scaled[2], -infinity);
    ASSERT_EQ(ex.extract("m", m), 0);
    EXPECT_NEAR(m[0], -largest, largest / 200);
    EXPECT_NEAR(m[1], largest, largest / 200);
    EXPECT_EQ(m[2], infinity);
    ASSERT_EQ(ex.extract("y", y), 0);
    for (int i = 0; i < 3; i++) EXPECT_EQ(y[i], i < 2 ? 0.5f : 0.f);
}

}  // namespace
