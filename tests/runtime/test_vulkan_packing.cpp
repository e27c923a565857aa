// VkMats of other packings and types than nets make, against what the host makes of the same
// values. Skipped where there is no device.
#include <math.h>
#include <string.h>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/layer.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "random_weights.h"
#include "runtime/log_mute.h"

namespace quoll {
namespace {

// Whole numbers in f16 and s8, negative ones too.
Mat numbers(const Shape& shape) {
    Mat m(shape);
    for (int b = 0; b < m.n; b++)
        for (int q = 0; q < m.c; q++) {
            float* x = m.batch(b).channel(q);
            for (int i = 0; i < m.w * m.h * m.d; i++)
                x[i] = (float)((i * 37 + q * 11 + b * 5) % 201 - 100);
        }
    return m;
}

// f32 numbers as another type.
Mat as_type(const Mat& m, DType type) {
    Mat made = m;
    const float scale[] = {1.f};
    if (type == DType::f16) cast_float32_to_float16(m, made);
    if (type == DType::bf16) cast_float32_to_bfloat16(m, made);
    if (type == DType::s8) quantize_to_int8(m, made, Mat(1, (void*)scale));
    return made;
}

void expect_same(const Mat& got, const Mat& want) {
    ASSERT_TRUE(got.logical_shape() == want.logical_shape());
    ASSERT_EQ(want.elempack, got.elempack);
    ASSERT_EQ(want.elemsize, got.elemsize);
    for (int b = 0; b < want.n; b++)
        for (int q = 0; q < want.c; q++)
            ASSERT_EQ(
                0, memcmp((char*)got.batch(b).channel(q).data, (char*)want.batch(b).channel(q).data,
                          (size_t)want.w * want.h * want.d * want.elemsize))
                << "item " << b << " channel " << q;
}

class VulkanPacking : public testing::Test {
protected:
    void SetUp() override {
        if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
        device = get_gpu_device();
    }
    VulkanDevice* device = nullptr;
    Option opt;
};

const Shape kShapes[] = {Shape(24), Shape(3, 16), Shape(5, 3, 8), Shape(3, 2, 5, 16)};

TEST_F(VulkanPacking, between_all_packings_and_types) {
    const DType types[] = {DType::f32, DType::f16, DType::bf16, DType::s8};
    for (Shape shape : kShapes)
        for (int items : {1, 3})
            for (DType from : types)
                for (DType to : types) {
                    shape.n = items;
                    const Mat values = numbers(shape), planar = as_type(values, from);
                    for (int in_pack : {1, 4, 8})
                        for (int out_pack : {1, 4, 8}) {
                            Mat in, want, got;
                            convert_packing(planar, in, in_pack);
                            convert_packing(as_type(values, to), want, out_pack);
                            VkCompute cmd(device);
                            VkMat x, y;
                            ASSERT_EQ(0, cmd.record_clone(in, x, opt));
                            EXPECT_EQ(in_pack, x.elempack);
                            ASSERT_EQ(0, cmd.record_convert(x, y, out_pack, to, opt));
                            ASSERT_EQ(0, cmd.record_clone(y, got, opt));
                            ASSERT_EQ(0, cmd.submit_and_wait());
                            expect_same(got, want);
                        }
                }
}

// Half to even; values that are too large, and NaN.
TEST_F(VulkanPacking, rounds_as_the_host) {
    const float values[] = {1.00390625f, 1.01171875f, -1.00390625f, 3.3895314e38f, INFINITY,
                            -INFINITY,   NAN,         0.f,          2.5f,          -126.5f};
    const int count = sizeof(values) / sizeof(values[0]);
    const Mat in(count, (void*)values);
    Mat want, got;
    cast_float32_to_bfloat16(in, want);
    VkCompute cmd(device);
    VkMat x, y, back;
    ASSERT_EQ(0, cmd.record_clone(in, x, opt));
    ASSERT_EQ(0, cmd.record_convert(x, y, 1, DType::bf16, opt));
    ASSERT_EQ(0, cmd.record_clone(y, got, opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    for (int i = 0; i < count; i++) {
        const uint16_t a = ((const uint16_t*)got.data)[i], b = ((const uint16_t*)want.data)[i];
        const bool nan = isnan(values[i]);
        EXPECT_TRUE(nan ? (a & 0x7fff) > 0x7f80 : a == b) << values[i] << " " << a << " " << b;
    }
}

TEST_F(VulkanPacking, what_cannot_be) {
    VkCompute cmd(device);
    VkMat x, y;
    ASSERT_EQ(0, cmd.record_clone(numbers(Shape(3, 6)), x, opt));
    ASSERT_EQ(0, cmd.record_convert(x, y, 4, DType::f32, opt));
    EXPECT_EQ(x.data, y.data);  // 6 rows are not packed by 4
    const LogMute mute;
    EXPECT_NE(0, cmd.record_convert(VkMat(), y, 4, DType::f32, opt));
    EXPECT_NE(0, cmd.record_convert(x, y, 1, DType::s32, opt));
    const VkMat pixels(5, 5, (size_t)3u, 1, device->acquire_blob_allocator());
    EXPECT_NE(0, cmd.record_convert(pixels, y, 1, DType::f16, opt));
    y = x;
    device->convert_packing(x, y, 1, 9, cmd, opt);
    EXPECT_TRUE(y.empty());
    EXPECT_NE(0, cmd.submit_and_wait());
}

TEST_F(VulkanPacking, uploads_and_downloads) {
    const Mat values = numbers(Shape(5, 3, 8));
    Mat packed, got;
    convert_packing(values, packed, 4);
    VkCompute cmd(device);
    VkMat x, x4;
    Option half = opt;
    half.use_fp16_storage = true;
    ASSERT_EQ(0, cmd.record_upload(packed, x, half));
    EXPECT_EQ(1, x.elempack);
    EXPECT_EQ(device->info.support_fp16_storage() ? DType::f16 : DType::f32, x.dtype);
    device->convert_packing(x, x4, 4, cmd, half);
    ASSERT_EQ(4, x4.elempack);
    ASSERT_EQ(0, cmd.record_download(x4, got, half));
    ASSERT_EQ(0, cmd.submit_and_wait());
    expect_same(got, packed);
    Option planar = opt;
    planar.use_packing_layout = false;
    Mat other;
    ASSERT_EQ(0, cmd.record_download(x4, other, planar));
    ASSERT_EQ(0, cmd.submit_and_wait());
    expect_same(other, values);
}

// Items on multiples of 4,096 bytes.
TEST_F(VulkanPacking, items_with_gaps) {
    Shape shape(5, 3, 8);
    shape.n = 3;
    const Mat values = numbers(shape);
    VkAllocator* const blobs = device->acquire_blob_allocator();
    VkMat all(5, 3, 8, (size_t)4u, 1, 3, blobs), copy;
    EXPECT_EQ(0u, all.nstep * all.elemsize % 4096);
    EXPECT_EQ(all.nstep * 3, all.total());
    EXPECT_EQ(120u, all.batch(1).total());
    VkCompute cmd(device);
    for (int b = 0; b < 3; b++) {
        VkMat item = all.batch(b);
        ASSERT_EQ(0, cmd.record_clone(values.batch(b), item, opt));
        EXPECT_EQ(all.data, item.data);  // where it lies
    }
    Mat got, last;
    VkMat packed;
    ASSERT_EQ(0, cmd.record_clone(all, copy, opt));
    ASSERT_EQ(0, cmd.record_convert(all.batch_range(1, 2), packed, 4, DType::f32, opt));
    ASSERT_EQ(0, cmd.record_download(copy, got, opt));
    ASSERT_EQ(0, cmd.record_clone(packed, last, opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    expect_same(got, values);
    Mat want;
    convert_packing(values.batch_range(1, 2), want, 4);
    expect_same(last, want);
}

// Packing and Cast as layers of files for ncnn, and another layer on a packed VkMat.
TEST_F(VulkanPacking, layers_by_themselves) {
    const Mat values = numbers(Shape(5, 3, 8));
    Mat packed;
    convert_packing(values, packed, 4);
    struct {
        const char* type;
        int keys[3], set[3];
        Mat want;
    } cases[] = {{"Packing", {0, 2, 3}, {4, 1, 1}, packed},
                 {"Cast", {0, 1, 1}, {1, 2, 2}, as_type(values, DType::f16)},
                 {"Packing", {0, 2, 3}, {4, 1, 2}, as_type(packed, DType::f16)}};
    for (const auto& c : cases) {
        const std::unique_ptr<Layer> layer(create_layer(c.type));
        ParamDict pd;
        for (int i = 0; i < 3; i++) pd.set(c.keys[i], c.set[i]);
        ASSERT_EQ(0, layer->load_param(pd));
        layer->vkdev = device;
        VkCompute cmd(device);
        VkMat x, y;
        Mat got;
        ASSERT_EQ(0, cmd.record_clone(values, x, opt));
        ASSERT_EQ(0, layer->forward(x, y, cmd, opt));
        ASSERT_EQ(0, cmd.record_clone(y, got, opt));
        ASSERT_EQ(0, cmd.submit_and_wait());
        expect_same(got, c.want);
    }
    const std::unique_ptr<Layer> relu(create_layer("ReLU"));
    ASSERT_EQ(0, relu->load_param(ParamDict()));
    relu->vkdev = device;
    Mat want, got;
    ASSERT_EQ(0, relu->forward(values, want, opt));
    VkCompute cmd(device);
    VkMat x, y;
    ASSERT_EQ(0, cmd.record_clone(as_type(packed, DType::bf16), x, opt));
    ASSERT_EQ(0, relu->forward(x, y, cmd, opt));
    ASSERT_EQ(0, cmd.record_download(y, got, opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    expect_same(got, want);
}

// A net takes packed inputs, and makes what it makes of planar ones.
TEST_F(VulkanPacking, of_inputs) {
    Net net;
    net.opt.use_vulkan_compute = true;
    ASSERT_EQ(0, net.load_param_mem("7767517\n2 2\nInput in 0 1 in\n"
                                    "Convolution conv 1 1 in out 0=4 1=3 5=1 6=288\n"));
    ASSERT_EQ(0, net.load_model(RandomWeights()));
    Shape shape(9, 7, 8);
    shape.n = 2;
    const Mat values = numbers(shape);
    Mat packed, want, got;
    convert_packing(values, packed, 8);
    Extractor one = net.create_extractor(), two = net.create_extractor();
    ASSERT_EQ(0, one.input("in", values));
    ASSERT_EQ(0, one.extract("out", want));
    VkCompute cmd(net.vulkan_device());
    VkMat x, y, gaps(9, 7, 1, (size_t)32u, 8, 2, net.vulkan_device()->acquire_blob_allocator());
    for (int b = 0; b < 2; b++) {
        x = gaps.batch(b);
        ASSERT_EQ(0, cmd.record_clone(packed.batch(b), x, opt));
    }
    ASSERT_EQ(0, two.input("in", gaps));
    ASSERT_EQ(0, two.extract("out", y, cmd));
    ASSERT_EQ(0, cmd.record_download(y, got, opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    expect_same(got, want);
}

// A layer of the application's that makes packed outputs of what it gets.
class Packs : public Layer {
public:
    Packs() { one_blob_only = support_inplace = support_vulkan = true; }
    int forward_inplace(Mat&, const Option&) const override { return 0; }
    int forward(const VkMat& bottom, VkMat& top, VkCompute& cmd, const Option& opt) const override {
        return cmd.record_convert(bottom, top, 4, bottom.dtype, opt);
    }
};
DEFINE_LAYER_CREATOR(Packs)

// They stay on the device: one submission, whatever the number of items.
TEST_F(VulkanPacking, of_layers_of_the_application) {
    const auto load = [](Net* net, bool gpu) {
        net->register_custom_layer("Packs", Packs_layer_creator);
        net->opt.use_vulkan_compute = gpu;
        if (net->load_param_mem("7767517\n4 4\nInput in 0 1 in\n"
                                "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=576\n"
                                "Packs own 1 1 a b\n"
                                "Convolution last 1 1 b out 0=8 1=3 4=1 5=1 6=576\n"))
            return -1;
        return net->load_model(RandomWeights());
    };
    Net cpu, gpu;
    ASSERT_EQ(0, load(&cpu, false));
    ASSERT_EQ(0, load(&gpu, true));
    {
        // The first run waits for the weights, which may be a submission of their own.
        Extractor ex = gpu.create_extractor();
        Mat out;
        ASSERT_EQ(0, ex.input("in", numbers(Shape(9, 5, 8))));
        ASSERT_EQ(0, ex.extract("out", out));
    }
    for (int items : {1, 3}) {
        Shape shape(33, 17, 8);
        shape.n = items;
        Mat want, got;
        Extractor host = cpu.create_extractor();
        ASSERT_EQ(0, host.input("in", numbers(shape)));
        ASSERT_EQ(0, host.extract("out", want));
        VkCompute cmd(gpu.vulkan_device());
        VkMat y;
        for (int i = 0; i < 2; i++) {
            const uint64_t before = gpu.vulkan_device()->gpu()->submissions();
            Extractor ex = gpu.create_extractor();
            ASSERT_EQ(0, ex.input("in", numbers(shape)));
            ASSERT_EQ(0, ex.extract("out", y, cmd));
            ASSERT_EQ(0, cmd.record_download(y, got, opt));
            ASSERT_EQ(0, cmd.submit_and_wait());
            EXPECT_EQ(before + 1, gpu.vulkan_device()->gpu()->submissions());
        }
        ASSERT_TRUE(got.logical_shape() == want.logical_shape());
        for (int b = 0; b < items; b++)
            for (int q = 0; q < want.c; q++)
                for (int k = 0; k < want.w * want.h; k++)
                    ASSERT_NEAR(want.batch(b).channel(q)[k], got.batch(b).channel(q)[k], 1e-2f);
    }
}

}  // namespace
}  // namespace quoll
