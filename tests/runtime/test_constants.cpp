// Layers whose inputs are all constants are run once, when a net is loaded.
#include <gtest/gtest.h>

#include <string>

#include "fused_nets.h"
#include "quoll/layer.h"

namespace quoll {
namespace {

TEST(Constants, a_kernel_made_of_constants_is_computed_once) {
    const struct {
        const char *layer, *params, *sizes;
        int outputs, w, c;  // of the input
    } cases[] = {
        {"Convolution", "19=1", "0=2 1=2 11=3 2=3", 3, 9, 3},
        {"Convolution", "19=1 4=1 2=2 3=2", "0=3 1=3 11=1 2=4", 4, 9, 1},
        {"Convolution1D", "19=1 3=2", "0=4 1=3 2=3", 3, 9, 0},
        {"ConvolutionDepthWise", "19=1 7=3", "0=3 1=2 11=1 2=6", 6, 9, 3},
        {"ConvolutionDepthWise", "19=1 7=2", "0=3 1=1 11=2 2=6", 6, 9, 4},
        {"Deconvolution", "28=1 3=2", "0=3 1=2 11=2 2=3", 2, 9, 3},
        {"Deconvolution1D", "28=1 3=2", "0=2 1=6 2=3", 6, 9, 0},
        {"DeconvolutionDepthWise", "28=1 7=3", "0=3 1=2 11=2 2=3", 6, 9, 3},
        {"DeconvolutionDepthWise", "28=1 7=2", "0=3 1=1 11=3 2=4", 6, 9, 4},
    };
    for (const auto& c : cases) {
        const std::string bias = std::to_string(c.outputs);
        const std::string text =
            "Input in 0 1 in\n"
            "MemoryData row 0 1 row 0=12\n"
            "MemoryData column 0 1 column 0=1 1=3\n"
            "MemoryData bias 0 1 bias 0=" +
            bias +
            "\n"
            "Split rows 1 2 row r0 r1\n"
            "BinaryOp t 2 1 column r0 t 0=2\n"
            "TensorUnary u 1 1 t u 0=1\n"
            "BinaryOp v 2 1 u r1 v\n"
            "Reshape k 1 1 v k " +
            c.sizes +
            "\n"
            "Sigmoid b 1 1 bias b\n" +
            c.layer + " conv 3 1 in k b a 5=1 " + c.params +
            "\n"
            "ReLU relu 1 1 a out\n";
        const Mat in = image(c.c ? Shape(c.w, 7, c.c) : Shape(c.w, 3));
        Weights weights[2];
        Net plain, fused;
        ASSERT_EQ(load(&plain, text, &weights[0].raw(12).raw(3).raw(c.outputs), false), kOk);
        ASSERT_EQ(load(&fused, text, &weights[1].raw(12).raw(3).raw(c.outputs), true), kOk);
        EXPECT_EQ(layers_that_run(plain), 8);
        EXPECT_EQ(layers_that_run(fused), 1) << c.layer;
        expect_near(run(fused, in), run(plain, in));
        // Blobs that are no more can be had.
        for (const char* blob : {"v", "k", "b", "row"})
            expect_near(run(fused, in, blob), run(plain, in, blob));
    }
}

TEST(Constants, constants_take_no_more_memory_than_a_net_may) {
    // 64 MB in all: the third layer stays.
    const std::string text =
        "Input in 0 1 in 0=1\n"
        "MemoryData x 0 1 x 0=1024 1=1\n"
        "Tile a 1 1 x a 0=0 1=7000\n"
        "Tile b 1 1 a b 0=0 1=2\n"
        "Reduction c 1 1 b c 0=0 1=1\n"
        "BinaryOp o 2 1 in c out\n";
    const Mat in = image(Shape(1));
    Weights weights[2];
    Net plain, fused;
    ASSERT_EQ(load(&plain, text, &weights[0].raw(1024), false), kOk);
    ASSERT_EQ(load(&fused, text, &weights[1].raw(1024), true), kOk);
    EXPECT_EQ(layers_that_run(fused), 3);
    expect_near(run(fused, in), run(plain, in));
}

TEST(Constants, outputs_that_are_constants_keep_their_axes) {
    const std::string text =
        "Input in 0 1 in 0=4\n"
        "MemoryData x 0 1 x 0=4\n"
        "Sigmoid s 1 1 x s\n"
        "Output output 1 1 s out 20=2 -23321=2,1,4 22=1\n";
    Weights weights;
    Net net;
    ASSERT_EQ(load(&net, text, &weights.raw(4), true), kOk);
    EXPECT_EQ(layers_that_run(net), 1);
    EXPECT_EQ(net.layers().back()->type, "Output");
}

TEST(Constants, constants_whose_size_follows_from_values) {
    // 5 6 7 ... as numbers and as a table that an index reads.
    const std::string text =
        "Input in 0 1 in 0=3\n"
        "MemoryData from 0 1 from 0=1 22=3\n"
        "MemoryData to 0 1 to 0=1 22=3\n"
        "MemoryData by 0 1 by 0=1 22=3\n"
        "Range range 3 1 from to by range\n"
        "CastTo cast 1 1 range floats 0=0\n"
        "BinaryOp o 2 1 in floats out\n";
    const int numbers[3][3] = {{5, 8, 1}, {0, 1 << 30, 1}, {0, 0, 1}};
    for (const int(&n)[3] : numbers) {
        Net plain, fused;
        for (Net* net : {&plain, &fused}) {
            net->opt.use_graph_fusion = net == &fused;
            const std::string param = "7767517\n7 7\n" + text;
            ASSERT_EQ(net->load_param_mem(param.c_str()), kOk);
            const unsigned char* bytes = (const unsigned char*)n;
            ASSERT_EQ(net->load_model(DataReaderFromMemory(bytes, sizeof(n))), kOk);
        }
        const bool few = n[1] == 8;  // none, and more than memory holds, are left to the run
        EXPECT_EQ(layers_that_run(fused), few ? 1 : 3) << n[1];
        const Mat in = image(Shape(3));
        if (few) expect_near(run(fused, in), run(plain, in));
    }
}

TEST(Constants, one_integer_as_an_operand_stays_an_integer) {
    const std::string param =
        "7767517\n3 3\nInput in 0 1 in\nMemoryData m 0 1 m 0=1 22=3\n"
        "BinaryOp o 2 1 in m out\n";
    const int number = 5;
    Shape shape(3);
    shape.dtype = DType::s32;
    Mat in(shape);
    for (int i = 0; i < 3; i++) ((int*)in)[i] = i;
    for (bool fusion : {false, true}) {
        Net net;
        net.opt.use_graph_fusion = fusion;
        ASSERT_EQ(net.load_param_mem(param.c_str()), kOk);
        const unsigned char* bytes = (const unsigned char*)&number;
        ASSERT_EQ(net.load_model(DataReaderFromMemory(bytes, sizeof(number))), kOk);
        const Mat out = run(net, in);
        ASSERT_EQ(out.w, 3);
        for (int i = 0; i < 3; i++) EXPECT_EQ(((const int*)out)[i], i + 5);
    }
}

// Each layer counts what it does.
class CountedTile : public Layer {
public:
    CountedTile() { one_blob_only = true; }
    int forward(const Mat& in, Mat& out, const Option&) const override {
        runs++;
        out = in.clone();
        return out.empty() ? (int)kOutOfMemory : (int)kOk;
    }
    static int runs;
};
int CountedTile::runs = 0;

TEST(Constants, layers_of_the_application_are_not_run_when_a_net_is_loaded) {
    const std::string text =
        "Input in 0 1 in 0=4\n"
        "MemoryData x 0 1 x 0=4\n"
        "Sigmoid s 1 1 x s\n"
        "Tile own 1 1 s t 0=0 1=1\n"
        "TanH h 1 1 t h\n"
        "BinaryOp o 2 1 in h out\n";
    Weights weights;
    Net net;
    const layer_creator_func make = [](void*) -> Layer* { return new CountedTile; };
    ASSERT_EQ(net.register_custom_layer("Tile", make), kOk);
    CountedTile::runs = 0;
    ASSERT_EQ(load(&net, text, &weights.raw(4), true), kOk);
    EXPECT_EQ(CountedTile::runs, 0);
    EXPECT_EQ(layers_that_run(net), 3);
    run(net, image(Shape(4)));
    EXPECT_EQ(CountedTile::runs, 1);
}

TEST(Constants, constants_may_be_given_by_the_application) {
    const std::string text =
        "Input in 0 1 in 0=4\n"
        "MemoryData x 0 1 x 0=4\n"
        "Split xs 1 2 x x0 x1\n"
        "Sigmoid s 1 1 x0 s\n"
        "TanH h 1 1 s h\n"
        "BinaryOp a 2 1 in h a\n"
        "BinaryOp b 2 1 a x1 b\n"  // x stays for this
        "BinaryOp o 2 1 b h out\n";
    Weights weights[3];
    Net plain, fused, kept;
    ASSERT_EQ(load(&plain, text, &weights[0].raw(4), false), kOk);
    ASSERT_EQ(load(&fused, text, &weights[1].raw(4), true), kOk);
    EXPECT_EQ(layers_that_run(fused), 3);
    const Mat in = image(Shape(4)), other = image(Shape(4));
    for (const char* given : {"x", "s", "h"}) {
        Mat want, have;
        for (Net* net : {&plain, &fused}) {
            Extractor ex = net->create_extractor();
            ASSERT_EQ(ex.input("in", in), kOk);
            ASSERT_EQ(ex.input(given, other), kOk);
            ASSERT_EQ(ex.extract("out", net == &plain ? want : have), kOk);
        }
        expect_near(have, want);
        EXPECT_GT(fabsf(want[0] - run(plain, in)[0]), 0.f) << given;
    }
}

TEST(Constants, constants_take_no_more_work_than_a_net_may) {
    // 2048^3 products: seconds, which a run that never asks for the blob would not take.
    const std::string text =
        "Input in 0 1 in 0=2048\n"
        "MemoryData x 0 1 x 0=1 1=1\n"
        "Tile t 1 1 x t 0=0 1=2048\n"
        "Tile u 1 1 t u 0=1 1=2048\n"
        "MatMul m 2 1 u u m\n"
        "Reduction r 1 1 m r 0=0 1=0 -23303=1,0 5=1\n"
        "BinaryOp o 2 1 in r out\n";
    Weights weights;
    Net net;
    ASSERT_EQ(load(&net, text, &weights.raw(1), true), kOk);
    EXPECT_EQ(layers_that_run(net), 3);
}

}  // namespace
}  // namespace quoll
