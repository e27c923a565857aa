// What a Vulkan device runs as one dispatch: averages, gates, patches, sums and attention made by
// what comes before or behind them, of one item and of batches. Skipped where there is no device.
#include <map>
#include <string>
#include <vector>

#include "vulkan_beside_cpu.h"

namespace quoll {
namespace {

class VulkanFusion : public Vulkan {};

// The answers of the CPU, in f32 and f16, and how often a shader is dispatched.
void check_fused(const char* layers, int size, const std::map<std::string, int>& dispatches) {
    const std::string text = std::string("7767517\n") + layers;
    for (bool half : {false, true}) {
        const VulkanNet cpu(text, false), gpu(text, true, half);
        EXPECT_LT(difference(gpu.run(size), cpu.run(size)), half ? 5e-3 : 1e-5);
        EXPECT_EQ(1, gpu.backend->regions);
        for (const auto& shader : dispatches)
            EXPECT_EQ(shader.second, gpu.backend->count(shader.first))
                << shader.first << " of" << gpu.backend->shaders;
    }
}

TEST_F(VulkanFusion, the_last_layer_stores_what_the_host_reads) {
    check_fused(
        "4 4\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=64 1=5 4=2 5=1 6=4800 9=1\n"
        "Pooling mean 1 1 a m 0=1 4=1\n"
        "Softmax softmax 1 1 m out\n",
        15, {{"softmax", 1}, {"download", 0}});
}

// A depthwise convolution adds up its pixels, of which the inner product takes the average; inputs
// in groups of 8, of 4, and others. So does a window of all pixels.
TEST_F(VulkanFusion, inner_products_take_averages) {
    for (int channels : {24, 20, 21}) {
        const char* const pool = channels == 20 ? "1=17 3=0" : channels == 21 ? "7=1 8=1" : "4=1";
        char layers[400];
        snprintf(layers, sizeof(layers),
                 "6 6\nInput in 0 1 in\n"
                 "Convolution conv 1 1 in a 0=%d 1=3 5=1 6=%d 9=1\n"
                 "ConvolutionDepthWise deep 1 1 a b 0=%d 1=3 4=1 5=1 6=%d 7=%d 9=1\n"
                 "Pooling mean 1 1 b c 0=1 %s\n"
                 "Reshape flat 1 1 c d 0=-1\n"
                 "InnerProduct classes 1 1 d out 0=10 1=1 2=%d\n",
                 channels, 27 * channels, channels, 9 * channels, channels, pool, 10 * channels);
        check_fused(layers, 19, {{"pool_global", 0}, {"pool_parts", 0}, {"innerproduct", 1}});
    }
}

// A window of all pixels is none that slides; one that counts its padding is.
TEST_F(VulkanFusion, windows_of_all_pixels) {
    const char* const conv =
        "3 3\nInput in 0 1 in\nConvolution conv 1 1 in a 0=12 1=3 5=1 6=324 9=1\n";
    for (const char* window : {"0=1 1=17", "0=0 1=17", "0=1 7=1 8=1", "0=0 7=1 8=1"})
        check_fused((conv + std::string("Pooling pool 1 1 a out ") + window + "\n").c_str(), 19,
                    {{"pool_global", 1}, {"pool", 0}});
    for (const char* window : {"0=1 1=19 3=1 6=1", "0=1 1=16", "0=1 1=17 11=16"})
        check_fused((conv + std::string("Pooling pool 1 1 a out ") + window + "\n").c_str(), 19,
                    {{"pool_global", 0}, {"pool", 1}});
}

// So does a softmax, of more values than threads too; one along an axis of one value is by itself.
TEST_F(VulkanFusion, softmax_takes_averages) {
    const auto layers = [](int channels, const std::string& behind) {
        char text[400];
        snprintf(text, sizeof(text),
                 "5 5\nInput in 0 1 in\n"
                 "Convolution conv 1 1 in a 0=%d 1=3 5=1 6=%d 9=1\n"
                 "ConvolutionDepthWise deep 1 1 a b 0=%d 1=3 4=1 5=1 6=%d 7=%d\n"
                 "Pooling mean 1 1 b c 0=1 4=1\n",
                 channels, 27 * channels, channels, 9 * channels, channels);
        return text + behind;
    };
    for (int channels : {10, 41, 300, 1000})
        for (const char* type : {"Softmax", "LogSoftmax"})
            check_fused(layers(channels, std::string(type) + " last 1 1 c out 0=0\n").c_str(), 19,
                        {{"pool_global", 0}, {"softmax", 1}, {"download", 0}});
    check_fused(layers(1200, "Softmax last 1 1 c out 0=0\n").c_str(), 19,
                {{"pool_global", 1}, {"softmax", 1}});
}

// 70225 rows are more than groups can be along an axis.
TEST_F(VulkanFusion, inner_products_of_many_rows) {
    check_fused(
        "4 4\nInput in 0 1 in\nReshape rows 1 1 in a 0=3 1=-1\n"
        "InnerProduct wide 1 1 a b 0=32 1=1 2=96\n"
        "InnerProduct narrow 1 1 b out 0=3 1=1 2=96\n",
        265, {{"innerproduct", 0}});
}

// The group of an inner product that comes last makes the softmax behind it; more outputs than
// threads, what is not the last layer, and what is too long. The host reads what it stores.
TEST_F(VulkanFusion, inner_products_make_softmax) {
    const auto layers = [](int outputs, const std::string& behind, int count) {
        return std::to_string(count) + " " + std::to_string(count) +
               "\nInput in 0 1 in\n"
               "Convolution conv 1 1 in a 0=13 1=5 3=3 5=1 6=975 9=1\n"
               "InnerProduct classes 1 1 a b 0=" +
               std::to_string(outputs) + " 1=1 2=" + std::to_string(325 * outputs) + "\n" + behind;
    };
    const std::string softmax = "Softmax softmax 1 1 b out\n";
    check_fused(layers(10, softmax, 4).c_str(), 18, {{"softmax", 0}, {"download", 0}});
    check_fused(layers(1000, softmax, 4).c_str(), 18, {{"softmax", 0}, {"download", 0}});
    check_fused(layers(100, "", 3).c_str(), 18, {{"innerproduct", 1}, {"download", 0}});
    check_fused(layers(2000, softmax, 4).c_str(), 18, {{"softmax", 1}});
    const std::string more = "Softmax softmax 1 1 b c 0=0\nInnerProduct last 1 1 c out 0=9 2=900\n";
    check_fused(layers(100, more, 5).c_str(), 18, {{"softmax", 0}, {"innerproduct", 2}});
}

// So do products on matrix units, with a blob that is added, and windows.
TEST_F(VulkanFusion, inner_products_take_averages_on_matrix_units) {
    if (!get_gpu_info().support_cooperative_matrix()) GTEST_SKIP() << "no matrix units";
    const std::string before =
        "7767517\n7 8\nInput in 0 1 in\n"
        "Convolution c1 1 1 in a 0=64 1=3 4=1 5=1 6=1728 9=1\n"
        "Split split 1 2 a a1 a2\n";
    const std::string behind =
        "BinaryOp sum 2 1 b a2 c 0=0\n"
        "Pooling mean 1 1 c d 0=1 4=1\n"
        "InnerProduct classes 1 1 d out 0=12 1=1 2=768\n";
    for (const char* layer : {"1=1 6=4096", "1=3 4=1 6=36864"}) {
        const std::string text =
            before + "Convolution c2 1 1 a1 b 0=64 5=1 " + layer + "\n" + behind;
        for (int size : {15, 91}) {
            const VulkanNet cpu(text, false), gpu(text, true, true);
            EXPECT_LT(difference(gpu.run(size), cpu.run(size)), 5e-3);
            EXPECT_EQ(0, gpu.backend->count("pool_global")) << gpu.backend->shaders;
        }
    }
}

// A depthwise convolution adds up its pixels, a convolution multiplies by the factors itself;
// channels that are no whole vec4s.
TEST_F(VulkanFusion, squeeze_excite_is_one_dispatch) {
    check_fused(
        "10 11\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=21 1=3 4=1 5=1 6=567 9=1\n"
        "ConvolutionDepthWise deep 1 1 a b 0=21 1=5 4=2 5=1 6=525 7=21 9=6 "
        "-23310=2,0.16666667,0.5\n"
        "Split split 1 2 b b1 b2\n"
        "Pooling mean 1 1 b1 p 0=1 4=1\n"
        "InnerProduct few 1 1 p q 0=6 1=1 2=126 9=1\n"
        "InnerProduct all 1 1 q r 0=21 1=1 2=126\n"
        "HardSigmoid hard 1 1 r g 0=0.2 1=0.4\n"
        "BinaryOp times 2 1 b2 g c 0=2\n"
        "Convolution last 1 1 c out 0=20 1=1 5=1 6=420\n",
        19, {{"excite", 1}, {"pool_parts", 0}, {"pool_global", 0}, {"binary", 0}, {"function", 0}});
}

// Where a product makes the input, the factors come first and are read twice, and the dense layers
// are convolutions.
TEST_F(VulkanFusion, squeeze_excite_between_other_layers) {
    check_fused(
        "10 12\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=24 1=3 4=1 5=1 6=648\n"
        "Split split 1 2 a a1 a2\n"
        "Pooling mean 1 1 a1 p 0=1 4=1\n"
        "Convolution few 1 1 p q 0=8 1=1 5=1 6=192 9=1\n"
        "Convolution all 1 1 q g 0=24 1=1 5=1 6=192 9=4\n"
        "BinaryOp times 2 1 a2 g b 0=2\n"
        "Split twice 1 2 b b1 b2\n"
        "Convolution left 1 1 b1 c 0=24 1=1 5=1 6=576\n"
        "BinaryOp sum 2 1 c b2 out 0=0\n",
        40, {{"excite", 1}, {"pool_parts", 1}, {"pool_global", 0}, {"binary", 1}});
}

// Nor are means in another order.
TEST_F(VulkanFusion, permuted_averages) {
    const std::string before =
        "Input in 0 1 in\n"
        "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
        "ConvolutionDepthWise deep 1 1 a b 0=8 1=3 4=1 5=1 6=72 7=8\n";
    const std::string permuted =
        "Reshape matrix 1 1 p p1 0=4 1=2\n"
        "Permute turned 1 1 p1 p2 0=1\n"
        "Reshape row 1 1 p2 p3 0=8\n";
    check_fused(("8 8\n" + before + "Pooling mean 1 1 b p 0=1 4=1\n" + permuted +
                 "InnerProduct last 1 1 p3 out 0=5 1=1 2=40\n")
                    .c_str(),
                9, {{"innerproduct", 1}});
    check_fused(("12 13\n" + before + "Split split 1 2 b b1 b2\nPooling mean 1 1 b1 p 0=1 4=1\n" +
                 permuted +
                 "InnerProduct few 1 1 p3 q 0=4 1=1 2=32 9=1\n"
                 "InnerProduct all 1 1 q g 0=8 1=1 2=32 9=4\n"
                 "BinaryOp times 2 1 b2 g c 0=2\n"
                 "Convolution last 1 1 c out 0=5 1=1 5=1 6=40\n")
                    .c_str(),
                9, {{"excite", 0}});
}

// Nor are those that a view puts along w or h of as many values as there are channels.
TEST_F(VulkanFusion, squeeze_excite_of_channels) {
    for (const char* shape : {"0=8 1=1 2=1", "0=1 1=8 2=1", "0=1 1=1 2=8"}) {
        const std::string text =
            "9 10\nInput in 0 1 in\n"
            "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
            "Split split 1 2 a a1 a2\n"
            "Pooling mean 1 1 a1 p 0=1 4=1\n"
            "InnerProduct few 1 1 p q 0=4 1=1 2=32 9=1\n"
            "InnerProduct all 1 1 q r 0=8 1=1 2=32 9=4\n"
            "Reshape view 1 1 r g " +
            std::string(shape) +
            "\n"
            "BinaryOp times 2 1 a2 g b 0=2\n"
            "Convolution last 1 1 b out 0=8 1=1 5=1 6=64\n";
        check_fused(text.c_str(), 8, {{"excite", shape[10] == '8'}});
    }
}

// A convolution of one channel, which a Softmax made planar, takes no factors.
TEST_F(VulkanFusion, squeeze_excite_of_one_channel) {
    check_fused(
        "9 10\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a0 0=1 1=3 4=1 5=1 6=27\n"
        "Softmax softmax 1 1 a0 a 0=2 1=1\n"
        "Split split 1 2 a a1 a2\n"
        "Pooling mean 1 1 a1 p 0=1 4=1\n"
        "InnerProduct few 1 1 p q 0=4 1=1 2=4 9=1\n"
        "InnerProduct all 1 1 q g 0=1 1=1 2=4 9=4\n"
        "BinaryOp times 2 1 a2 g b 0=2\n"
        "Convolution last 1 1 b out 0=8 1=1 5=1 6=8\n",
        9, {{"excite", 1}, {"binary_strided", 1}});
}

// Factors of more than a pixel, or of one of the padding, are none.
TEST_F(VulkanFusion, squeeze_excite_has_one_pixel) {
    const std::string text =
        "7 8\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=24 1=3 4=1 5=1 6=648\n"
        "Split split 1 2 a a1 a2\n"
        "Pooling mean 1 1 a1 p 0=1 1=3 5=1\n"
        "Convolution few 1 1 p q 0=8 1=1 %s 5=1 6=192 9=1\n"
        "Convolution all 1 1 q g 0=24 1=1 5=1 6=192\n"
        "BinaryOp times 2 1 a2 g out 0=2\n";
    for (const char* padding : {"4=0", "4=1", "3=3 4=1"}) {
        char padded[700];
        snprintf(padded, sizeof(padded), text.c_str(), padding);
        check_fused(padded, 3, {{"excite", padding[2] == '0'}});
    }
}

// Rows of a matrix are pixels as they lie, made where they are joined; copied: the row before them.
TEST_F(VulkanFusion, patches_are_made_as_rows) {
    const std::string patches =
        "Convolution conv 1 1 in a 0=24 1=4 3=4 5=1 6=1152\n"
        "Reshape flat 1 1 a b 0=-1 1=24\n"
        "Permute rows 1 1 b c 0=1\n";
    check_fused(("5 5\nInput in 0 1 in\n" + patches + "LayerNorm norm 1 1 c out 0=24\n").c_str(),
                20, {{"copy", 0}, {"normalize", 1}});
    check_fused(("7 7\nInput in 0 1 in\n" + patches +
                 "MemoryData class 0 1 d 0=24 1=1\n"
                 "Concat join 2 1 d c e 0=0\n"
                 "LayerNorm norm 1 1 e out 0=24\n")
                    .c_str(),
                20, {{"copy", 1}, {"normalize", 1}});
    check_fused(
        "5 5\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=22 1=4 3=4 5=1 6=1056\n"
        "Reshape flat 1 1 a b 0=-1 1=22\n"
        "Permute rows 1 1 b c 0=1\n"
        "LayerNorm norm 1 1 c out 0=22\n",
        20, {{"copy", 2}});
}

// Three items, each as the CPU makes it by itself, in f32 and f16; check: of the net that ran.
template <class Check>
void check_batch(const std::string& text, int size, const Check& check) {
    const VulkanNet cpu(text, false);
    for (bool half : {false, true}) {
        const VulkanNet gpu(text, true, half);
        Shape shape = image(size, 0).logical_shape();
        shape.n = 3;
        const Mat batch(shape);
        for (int item = 0; item < 3; item++) {
            const Mat from = image(size, item);
            Mat to = batch.batch(item);
            for (int q = 0; q < from.c; q++)
                memcpy((float*)to.channel(q).data, from.channel(q).data,
                       (size_t)from.w * from.h * sizeof(float));
        }
        Extractor ex = gpu.net.create_extractor();
        Mat out;
        ASSERT_EQ(0, ex.input(gpu.net.input_indexes()[0], batch));
        ASSERT_EQ(0, ex.extract(gpu.net.output_indexes()[0], out));
        for (int item = 0; item < 3; item++)
            EXPECT_LT(difference({out.batch(item)}, cpu.run(size, item)), half ? 5e-3 : 1e-5)
                << item;
        check(gpu);
    }
}

TEST_F(VulkanFusion, patches_of_a_batch_are_made_as_rows) {
    const std::string text =
        "7767517\n8 9\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=24 1=4 3=4 5=1 6=1152\n"
        "Reshape flat 1 1 a b 0=-1 1=24\n"
        "Permute rows 1 1 b c 0=1\n"
        "Split split 1 2 c c1 c2\n"
        "LayerNorm norm 1 1 c1 d 0=24\n"
        "Concat join 2 1 d c2 e 0=0\n"
        "LayerNorm last 1 1 e out 0=24\n";
    check_batch(text, 20, [](const VulkanNet& gpu) { EXPECT_EQ(2, gpu.backend->count("copy")); });
}

// Items of a batch have factors of their own, also where a product multiplies them.
TEST_F(VulkanFusion, squeeze_excite_of_a_batch) {
    const std::string text =
        "7767517\n9 10\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=24 1=3 4=1 5=1 6=648\n"
        "ConvolutionDepthWise deep 1 1 a b 0=24 1=3 4=1 5=1 6=216 7=24\n"
        "Split split 1 2 b b1 b2\n"
        "Pooling mean 1 1 b1 p 0=1 4=1\n"
        "InnerProduct few 1 1 p q 0=6 1=1 2=144 9=1\n"
        "InnerProduct all 1 1 q g 0=24 1=1 2=144 9=4\n"
        "BinaryOp times 2 1 b2 g c 0=2\n"
        "Convolution last 1 1 c out 0=20 1=1 5=1 6=480\n";
    check_batch(text, 19, [](const VulkanNet& gpu) {
        EXPECT_EQ(1, gpu.backend->count("excite"));
        EXPECT_EQ(0, gpu.backend->count("pool_global"));
    });
}

// A constant, of one item, beside those of a batch: rows as the class token of a vision
// transformer, and channels.
TEST_F(VulkanFusion, constants_joined_with_a_batch) {
    const std::string text =
        "7767517\n8 8\nInput in 0 1 in\n"
        "MemoryData extra 0 1 extra 0=4 1=4 2=4\nMemoryData token 0 1 token 0=16 1=1\n"
        "Convolution patch 1 1 in a 0=8 1=4 3=4 5=1 6=384\n"
        "Concat channels 2 1 a extra b 0=0\n"
        "Reshape reshape 1 1 b c 0=16 1=12\n"
        "Concat rows 2 1 token c d 0=0\n"
        "InnerProduct last 1 1 d out 0=10 1=1 2=160\n";
    check_batch(text, 16, [](const VulkanNet& gpu) { EXPECT_EQ(1, gpu.backend->regions); });
}

// The host adds it to each item.
TEST_F(VulkanFusion, constants_added_to_a_batch) {
    for (const char* inputs : {"a extra", "extra a"}) {
        const std::string text =
            "7767517\n5 5\nInput in 0 1 in\n"
            "MemoryData extra 0 1 extra 0=5 1=5 2=8\n"
            "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
            "Eltwise sum 2 1 " +
            std::string(inputs) +
            " b 0=1\n"
            "Convolution last 1 1 b out 0=20 1=1 5=1 6=160\n";
        check_batch(text, 5, [](const VulkanNet&) {});
    }
}

// The size of a batch, to which the only item is resized.
TEST_F(VulkanFusion, one_item_resized_as_a_batch) {
    const std::string text =
        "7767517\n6 6\nInput in 0 1 in\nInput like 0 1 like\n"
        "Interp resize 2 1 in like a 0=2 5=1\nSigmoid sigmoid 1 1 a b\n"
        "ReLU relu 1 1 b c 0=0.1\nPooling mean 1 1 c out 0=1 4=1\n";
    const VulkanNet cpu(text, false), gpu(text, true);
    Shape like(64, 48, 1);
    like.n = 2;
    std::vector<Mat> outs[2];
    for (const bool on_gpu : {false, true}) {
        Extractor ex = (on_gpu ? gpu : cpu).net.create_extractor();
        Mat size(like), out;
        size.fill(1.f);
        ASSERT_EQ(0, ex.input("in", image(5, 0)));
        ASSERT_EQ(0, ex.input("like", size));
        ASSERT_EQ(0, ex.extract("out", out));
        ASSERT_EQ(2, out.n);
        for (int b = 0; b < 2; b++) outs[on_gpu].push_back(out.batch(b).clone());
    }
    EXPECT_LT(difference(outs[1], outs[0]), 1e-5);
    EXPECT_GT(gpu.backend->regions, 0);
}

// The host begins each item with them.
TEST_F(VulkanFusion, constant_states_of_a_batch) {
    const std::string text =
        "7767517\n6 6\nInput in 0 1 in\n"
        "MemoryData hidden 0 1 hidden 0=6 1=1\nMemoryData cell 0 1 cell 0=6 1=1\n"
        "Reshape rows 1 1 in a 0=12 1=9\n"
        "LSTM lstm 3 1 a hidden cell b 0=6 1=288\n"
        "InnerProduct last 1 1 b out 0=10 1=1 2=60\n";
    check_batch(text, 6, [](const VulkanNet&) {});
}

// So many weights that a dispatch makes the values between the two dense layers.
TEST_F(VulkanFusion, large_squeeze_excite_is_two_dispatches) {
    check_fused(
        "9 10\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=520 1=3 3=2 4=1 5=1 6=14040\n"
        "ConvolutionDepthWise deep 1 1 a b 0=520 1=3 4=1 5=1 6=4680 7=520\n"
        "Split split 1 2 b b1 b2\n"
        "Pooling mean 1 1 b1 p 0=1 4=1\n"
        "InnerProduct few 1 1 p q 0=136 1=1 2=70720 9=1\n"
        "InnerProduct all 1 1 q g 0=520 1=1 2=70720 9=4\n"
        "BinaryOp times 2 1 b2 g c 0=2\n"
        "Convolution last 1 1 c out 0=16 1=1 5=1 6=8320\n",
        9, {{"excite", 2}, {"binary", 0}});
}

// Tokens of an image, and a block of a transformer, whose sums and activation are products' own.
std::string transformer(const std::string& patch) {
    return "7767517\n16 18\nInput in 0 1 in\n"
           "Convolution patch 1 1 in a 0=32 1=4 3=4 5=1 6=1536\n"
           "Reshape reshape 1 1 a b 0=-1 1=32\n"
           "Permute permute 1 1 b c 0=1\n"
           "Split s1 1 2 c c1 c2\n"
           "LayerNorm n1 1 1 c1 d 0=32 1=0.000001\n" +
           patch +
           "BinaryOp add1 2 1 c2 e f\n"
           "Split s2 1 2 f f1 f2\n"
           "LayerNorm n2 1 1 f1 g 0=32 1=0.000001\n"
           "Gemm up 1 1 g h 0=1.5 1=0.5 3=1 5=1 6=1 8=64 9=32 10=4\n"
           "GELU gelu 1 1 h i 0=1\n"
           "Gemm down 1 1 i j 3=1 5=1 6=1 8=32 9=64 10=4\n"
           "BinaryOp add2 2 1 f2 j k\n"
           "InnerProduct last 1 1 k l 0=10 1=1 2=320\n"
           "Swish swish 1 1 l out\n";
}

int count_products(const VulkanNet& net) {
    int count = 0;
    for (const char* shader : {"product", "product_matrix", "innerproduct"})
        count += net.backend->count(shader);
    return count;
}

// 16 tokens, and 4, which are vectors by themselves.
TEST_F(VulkanFusion, sums_and_activations_are_made_by_products) {
    const std::string text =
        transformer("MultiHeadAttention heads 1 1 d e 0=32 1=2 2=1024 6=0.3\n");
    for (int size : {16, 8}) {
        for (bool half : {false, true}) {
            const VulkanNet cpu(text, false), gpu(text, true, half);
            EXPECT_LT(difference(gpu.run(size), cpu.run(size)), half ? 5e-3 : 1e-5) << size;
            // Queries, keys and values are one product.
            EXPECT_EQ(5, count_products(gpu)) << gpu.backend->shaders;
            for (const char* shader : {"unary", "binary", "function"})
                EXPECT_EQ(0, gpu.backend->count(shader)) << gpu.backend->shaders;
        }
    }
}

// 36 tokens: scores that are products of matrices with a softmax between them, or queries that
// share their keys, for the first item and the last one of a batch too.
TEST_F(VulkanFusion, attention_of_many_queries) {
    const std::string text = transformer("MultiHeadAttention heads 1 1 d e 0=32 1=2 2=1024\n");
    const VulkanNet cpu(text, false), gpu(text, true), half(text, true, true);
    EXPECT_LT(difference(gpu.run(24), cpu.run(24)), 1e-5);
    EXPECT_EQ(1, gpu.backend->count("softmax")) << gpu.backend->shaders;
    EXPECT_LT(difference(half.run(24), cpu.run(24)), 5e-3);
    EXPECT_EQ(0, half.backend->count("softmax")) << half.backend->shaders;
    check_batch(text, 24, [](const VulkanNet&) {});
}

// Keys and values of another blob than the queries.
TEST_F(VulkanFusion, attention_between_blobs_has_three_products) {
    const std::string text = transformer(
        "Split s3 1 2 d d1 d2\nReLU relu 1 1 d2 d3\n"
        "MultiHeadAttention heads 2 1 d1 d3 e 0=32 1=2 2=1024\n");
    std::string counted = text;
    counted.replace(counted.find("16 18"), 5, "18 21");
    const VulkanNet cpu(counted, false), gpu(counted, true);
    EXPECT_LT(difference(gpu.run(16), cpu.run(16)), 1e-5);
    EXPECT_EQ(7, count_products(gpu)) << gpu.backend->shaders;
}

// Queries that are the first rows of the blob of the keys, as those of a class token are.
TEST_F(VulkanFusion, attention_of_the_first_rows) {
    check_fused(
        "8 10\nInput in 0 1 in\n"
        "Convolution patch 1 1 in a 0=32 1=4 3=4 5=1 6=1536\n"
        "Reshape flat 1 1 a b 0=-1 1=32\nPermute rows 1 1 b c 0=1\n"
        "Split split 1 2 c c1 c2\n"
        "Slice slice 1 2 c1 d e -23300=2,3,-233 1=0\n"
        "MultiHeadAttention heads 2 1 d c2 f 0=32 1=2 2=1024 6=0.01\n"
        "Concat join 2 1 f e out 0=0\n",
        16, {});
}

// Sums and activations that stay by themselves: of a product that others read, or that is an
// output; of a blob that comes later; behind an activation; where C is no bias.
TEST_F(VulkanFusion, what_products_do_not_make) {
    const char* const head =
        "Convolution patch 1 1 in a 0=32 1=4 3=4 5=1 6=1536\n"
        "Reshape reshape 1 1 a b 0=-1 1=32\nPermute permute 1 1 b c 0=1\n";
    const auto check = [&](const char* sizes, const char* layers, int binary, int unary) {
        const std::string text = std::string(sizes) + "\nInput in 0 1 in\n" + head + layers;
        check_fused(text.c_str(), 16, {{"binary", binary}, {"unary", unary}});
    };
    check("8 9",
          "Gemm p 1 1 c d 3=1 5=1 6=1 8=32 9=32 10=4\nSplit s 1 2 d d1 d2\n"
          "Mish f 1 1 d1 e\nBinaryOp sum 2 1 e d2 out\n",
          1, 1);
    check("8 9",
          "Split s 1 2 c c1 c2\nGemm p 1 1 c1 d 3=1 5=1 6=1 8=32 9=32 10=4\n"
          "Mish f 1 1 c2 e\nBinaryOp sum 2 1 d e out\n",
          1, 1);
    check("7 8",
          "Split s 1 2 c c1 c2\nInnerProduct p 1 1 c1 d 0=32 1=1 2=1024 9=4\n"
          "BinaryOp sum 2 1 d c2 out\n",
          1, 0);
    // A blob is added already: C, one value for all.
    check("8 9",
          "Split s 1 2 c c1 c2\nGemm p 1 1 c1 d 2=0 3=0 5=1 6=1 8=32 9=32 10=0\n"
          "BinaryOp sum 2 1 c2 d e\nMish f 1 1 e out\n",
          1, 1);
}

// Rows that are turned before they become those of other heads.
TEST_F(VulkanFusion, attention_of_turned_rows_in_other_heads) {
    check_fused(
        "16 23\nInput in 0 1 in\n"
        "Convolution patch 1 1 in a 0=32 1=4 3=4 5=1 6=1536\n"
        "Reshape heads 1 1 a b 0=16 1=8 2=4\nSplit split 1 3 b q k v\n"
        "MemoryData cos 0 1 c 0=8 1=8\nSplit cosines 1 2 c c1 c2\n"
        "MemoryData sin 0 1 s 0=8 1=8\nSplit sines 1 2 s s1 s2\n"
        "RotaryEmbed turn_q 3 1 q c1 s1 tq\nReshape view_q 1 1 tq vq 0=16 1=4 2=8\n"
        "RotaryEmbed turn_k 3 1 k c2 s2 tk\nReshape view_k 1 1 tk vk 0=16 1=4 2=8\n"
        "Reshape view_v 1 1 v vv 0=16 1=4 2=8\n"
        "MemoryData past 0 1 p 0=16 1=2 2=8\nSplit pasts 1 2 p pk pv\n"
        "SDPA attention 5 3 vq vk vv pk pv out all_k all_v 6=0.001 7=1\n",
        16, {{"rotary", 2}});
}

// Keys of one item, which are turned, for all items of a batch.
TEST_F(VulkanFusion, turned_keys_of_a_batch) {
    const std::string text =
        "7767517\n9 11\nInput q 0 1 q\nInput k 0 1 k\nInput v 0 1 v\nInput c 0 1 c\n"
        "Input s 0 1 s\nInput pk 0 1 pk\nInput pv 0 1 pv\nRotaryEmbed turned 3 1 k c s gk\n"
        "SDPA heads 5 3 q gk v pk pv y all_k all_v 7=1\n";
    const VulkanNet cpu(text, false), gpu(text, true);
    const Shape rows(32, 64, 2), past(32, 200, 2), angles(16, 64);
    const std::pair<const char*, Shape> inputs[] = {{"q", rows},   {"k", rows},   {"v", rows},
                                                    {"c", angles}, {"s", angles}, {"pk", past},
                                                    {"pv", past}};
    for (const bool pasts : {false, true}) {
        std::vector<Mat> outs[2];
        for (const bool on_gpu : {false, true}) {
            Extractor ex = (on_gpu ? gpu : cpu).net.create_extractor();
            for (const auto& input : inputs) {
                Shape shape = input.second;
                if (*input.first == 'q' || (pasts && *input.first == 'p')) shape.n = 2;
                Mat m(shape);
                for (int b = 0; b < m.n; b++)
                    for (int q = 0; q < m.c; q++)
                        for (int i = 0; i < m.w * m.h; i++)
                            m.batch(b).channel(q)[i] =
                                (float)((i * 37 + q * 11 + b * 5) % 41 - 20) * 0.05f;
                ASSERT_EQ(0, ex.input(input.first, m));
            }
            for (const char* name : {"y", "all_k", "all_v"}) {
                Mat out;
                ASSERT_EQ(0, ex.extract(name, out));
                ASSERT_EQ(2, out.n);
                for (int b = 0; b < 2; b++) outs[on_gpu].push_back(out.batch(b).clone());
            }
        }
        EXPECT_LT(difference(outs[1], outs[0]), 1e-5) << pasts;
    }
    EXPECT_GT(gpu.backend->regions, 0);
}

// Items of a batch add their own.
TEST_F(VulkanFusion, sums_of_products_of_a_batch) {
    check_batch(transformer("MultiHeadAttention heads 1 1 d e 0=32 1=2 2=1024\n"), 16,
                [](const VulkanNet& gpu) {
                    EXPECT_EQ(5, count_products(gpu)) << gpu.backend->shaders;
                    EXPECT_EQ(0, gpu.backend->count("binary")) << gpu.backend->shaders;
                });
}

// Channels of both inputs of a Concat, of which the first is no whole vec4s.
TEST_F(VulkanFusion, shuffled_channels_come_from_where_they_were_made) {
    check_fused(
        "10 12\nInput in 0 1 in\n"
        "Split split 1 2 in in1 in2\n"
        "Convolution left 1 1 in1 a 0=10 1=3 4=1 5=1 6=270\n"
        "Convolution right 1 1 in2 b 0=14 1=3 4=1 5=1 6=378\n"
        "Concat concat 2 1 a b c 0=0\n"
        "ShuffleChannel shuffle 1 1 c d 0=2\n"
        "Slice slice 1 2 d e f -23300=2,9,15 1=0\n"
        "Convolution first 1 1 e g 0=8 1=1 5=1 6=72\n"
        "Convolution second 1 1 f h 0=8 1=1 5=1 6=120\n"
        "BinaryOp sum 2 1 g h out 0=0\n",
        11, {{"gather", 2}, {"copy", 0}});
}

// A constant has one item for all of a batch.
TEST_F(VulkanFusion, shuffled_constants_of_a_batch) {
    const std::string text =
        "7767517\n6 6\nInput in 0 1 in\n"
        "MemoryData extra 0 1 extra 0=4 1=4 2=8\n"
        "Convolution patch 1 1 in a 0=8 1=4 3=4 5=1 6=384\n"
        "Concat concat 2 1 a extra b 0=0\n"
        "ShuffleChannel shuffle 1 1 b c 0=2\n"
        "Convolution last 1 1 c out 0=10 1=1 5=1 6=160\n";
    check_batch(text, 16, [](const VulkanNet& gpu) {
        EXPECT_EQ(1, gpu.backend->regions);
        EXPECT_EQ(0, gpu.backend->count("gather"));
    });
}

}  // namespace
}  // namespace quoll
