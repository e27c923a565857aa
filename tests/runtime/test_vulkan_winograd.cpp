// Convolutions of 3x3 windows by Winograd's algorithm on a Vulkan device, against the CPU's
// answers. Skipped where there is no device.
#include <math.h>

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "forwarding_backend.h"
#include "layer/vulkan/compiled_region.h"
#include "layer/vulkan/vulkan_backend.h"
#include "layer/vulkan/winograd_vulkan.h"
#include "quoll/net.h"
#include "random_weights.h"
#include "vulkan_nets.h"

namespace quoll {
namespace {

class CountingBackend : public ForwardingBackend {
public:
    using ForwardingBackend::ForwardingBackend;
    std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                  const Option& opt) const override {
        const auto compiled = ForwardingBackend::compile(region, opt);
        if (compiled)
            for (const Dispatch& d : as_vulkan(*compiled).program().dispatches)
                transforms += d.key.shader == Shader::winograd_input;
        return compiled;
    }
    mutable int transforms = 0;
};

// Runs a net with tiles of `out` outputs along an axis; -1: as is expected to be fastest. Returns
// the number of input transforms.
int run_gpu(const std::string& text, const Mat& in, int out, bool half, Mat* made,
            bool arithmetic = false) {
    Net net;
    net.opt.num_threads = 1, net.opt.use_fp16_storage = half;
    net.opt.use_fp16_arithmetic = arithmetic, net.opt.use_cooperative_matrix = !arithmetic;
    const auto backend = std::make_shared<CountingBackend>(net.opt);
    net.add_backend(backend);
    EXPECT_EQ(0, net.load_param_mem(text.c_str()));
    EXPECT_EQ(0, net.load_model(RandomWeights()));
    force_winograd(out);
    EXPECT_EQ(0, run(net, in, made));
    force_winograd(-1);
    return backend->transforms;
}

Mat run_cpu(const std::string& text, const Mat& in) {
    Net net;
    Mat made;
    EXPECT_EQ(0, load(&net, text.c_str()));
    EXPECT_EQ(0, run(net, in, &made));
    return made;
}

Mat blob(int w, int h, int c, int n) {
    Shape shape(w, h, c);
    shape.n = n;
    Mat m(shape);
    for (int b = 0; b < n; b++)
        for (int q = 0; q < c; q++)
            for (int i = 0; i < w * h; i++)
                m.batch(b).channel(q)[i] = (float)((i * 37 + q * 11 + b * 7) % 101 - 50) / 50.f;
    return m;
}

std::string conv(int inputs, int outputs, const std::string& parameters) {
    return "7767517\n2 2\nInput in 0 1 in\nConvolution conv 1 1 in out 0=" +
           std::to_string(outputs) + " 1=3 5=1 6=" + std::to_string(9 * inputs * outputs) + " " +
           parameters + "\n";
}

class VulkanWinograd : public VulkanApi {};

void expect_conv(const std::string& text, const Mat& in) {
    const Mat want = run_cpu(text, in);
    struct Form {
        int out;
        bool half;
        double most;
        bool arithmetic = false;
    };
    for (const Form& form : {Form{2, false, 2e-6}, Form{4, false, 1e-5}, Form{2, true, 4e-3},
                             Form{2, true, 4e-3, true}}) {
        Mat made;
        EXPECT_LT(0, run_gpu(text, in, form.out, form.half, &made, form.arithmetic));
        EXPECT_LT(difference(made, want), form.most) << form.out << (form.half ? " f16" : "");
    }
}

// Maps that fill no tile, one pixel, channels of no whole step, more padding on one side.
TEST_F(VulkanWinograd, maps_of_any_size) {
    expect_conv(conv(16, 24, "4=1 9=1"), blob(33, 17, 16, 1));
    expect_conv(conv(20, 28, "4=1"), blob(6, 5, 20, 1));
    expect_conv(conv(64, 32, "9=2 -23310=1,0.1"), blob(3, 3, 64, 1));
    expect_conv(conv(8, 8, "4=0 15=2 14=1 16=0 9=6 -23310=2,0.2,0.5"), blob(13, 4, 8, 1));
    expect_conv(conv(16, 16, "4=1 18=0.5"), blob(9, 9, 16, 1));
}

// Items in parts: three and two at a time.
TEST_F(VulkanWinograd, batches) {
    expect_conv(conv(16, 16, "4=1 9=1"), blob(9, 7, 16, 3));
    const std::string text = conv(64, 64, "4=1");
    const Mat in = blob(64, 64, 64, 5);
    Mat made;
    EXPECT_EQ(2, run_gpu(text, in, 2, false, &made));
    EXPECT_LT(difference(made, run_cpu(text, in)), 2e-6);
}

// A blob that is added, an output within a Concat, sums of channels for what follows.
TEST_F(VulkanWinograd, what_is_fused) {
    const std::string text =
        "7767517\n12 15\nInput in 0 1 in\n"
        "Convolution c1 1 1 in a 0=32 1=3 4=1 5=1 6=4608 9=1\n"
        "Split s1 1 3 a a1 a2 a3\n"
        "Convolution c2 1 1 a1 b 0=32 1=3 4=1 5=1 6=9216\n"
        "BinaryOp sum 2 1 b a2 c 0=0\n"
        "ReLU relu 1 1 c d\n"
        "Convolution c3 1 1 a3 e 0=16 1=3 4=1 5=1 6=4608 9=1\n"
        "Concat join 2 1 d e f\n"
        "Split s2 1 2 f f1 f2\n"
        "Pooling mean 1 1 f1 g 0=1 4=1\n"
        "Convolution gate 1 1 g h 0=48 1=1 5=1 6=2304 9=4\n"
        "BinaryOp times 2 1 f2 h out 0=2\n";
    const Mat in = blob(19, 14, 16, 1), want = run_cpu(text, in);
    Mat made;
    EXPECT_EQ(3, run_gpu(text, in, 4, false, &made));
    EXPECT_LT(difference(made, want), 1e-5);
    EXPECT_EQ(3, run_gpu(text, in, 2, true, &made));
    EXPECT_LT(difference(made, want), 5e-3);
}

// What is infinite or NaN reaches the outputs whose windows contain it, and no others of a tile.
TEST_F(VulkanWinograd, what_is_not_finite) {
    Mat in = blob(21, 15, 16, 1);
    in.channel(3)[0] = INFINITY, in.channel(5)[100] = -INFINITY, in.channel(9)[207] = NAN;
    const std::string text = conv(16, 20, "4=1");
    const Mat want = run_cpu(text, in);
    for (int out : {2, 4}) {
        Mat made;
        EXPECT_LT(0, run_gpu(text, in, out, false, &made));
        EXPECT_LT(difference(made, want), 1e-5);
    }
}

// Points of f16 overflow where outputs do not.
TEST_F(VulkanWinograd, points_beyond_the_range_of_f16) {
    Mat in = blob(18, 18, 32, 1);
    for (int q = 0; q < in.c; q++)
        for (int i = 0; i < in.w * in.h; i++)
            in.channel(q)[i] = i % 11 == q % 11 ? -21600.f : (float)((i + q) % 7) * 3600.f;
    const std::string text = conv(32, 16, "4=1");
    const Mat want = run_cpu(text, in);
    double most = 0;
    for (size_t i = 0; i < want.total(); i++)
        most = std::max(most, (double)fabsf(((const float*)want.data)[i]));
    ASSERT_LT(most, 65504.);
    Mat made;
    EXPECT_LT(0, run_gpu(text, in, 2, true, &made));
    EXPECT_LT(difference(made, want), 4e-3);
}

// It is chosen where it multiplies less than half as often and there is enough to multiply.
TEST_F(VulkanWinograd, is_chosen_for_large_layers) {
    Mat made;
    EXPECT_LT(0, run_gpu(conv(128, 128, "4=1"), blob(80, 80, 128, 1), -1, false, &made));
    EXPECT_EQ(0, run_gpu(conv(16, 16, "4=1"), blob(8, 8, 16, 1), -1, false, &made));
    EXPECT_EQ(0, run_gpu(conv(16, 16, "4=1"), blob(8, 8, 16, 1), 0, false, &made));
    EXPECT_EQ(0, run_gpu(conv(16, 16, "4=1 3=2"), blob(8, 8, 16, 1), 2, false, &made));
    EXPECT_EQ(0, run_gpu(conv(16, 16, "4=1 2=2"), blob(8, 8, 16, 1), 2, false, &made));
}

}  // namespace
}  // namespace quoll
