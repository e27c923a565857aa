// Shaders and layers of an application on a device: Pipeline, record_pipeline,
// compile_spirv_module, Layer::forward on VkMats, within a Net and by itself. Skipped where there
// is no device.
#include <math.h>
#include <string.h>

#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "quoll/command.h"
#include "quoll/glsl.h"
#include "quoll/gpu.h"
#include "quoll/net.h"
#include "quoll/pipeline.h"
#include "random_weights.h"
#include "runtime/log_mute.h"

namespace quoll {
namespace {

// y = factor * x + offset of each channel, with the sizes as specialisation constants where known.
const char* const kAffine = R"(#version 450
layout (constant_id = 0) const int width = 0;
layout (binding = 0) readonly buffer Input { sfp x[]; };
layout (binding = 1) writeonly buffer Output { sfp y[]; };
layout (binding = 2) readonly buffer Offsets { sfp offsets[]; };
layout (push_constant) uniform Sizes { int width; int h; int c; int cstep; float factor; } p;
void main() {
    const ivec3 at = ivec3(gl_GlobalInvocationID);
    if (at.x >= psc(width) || at.y >= p.h || at.z >= p.c) return;
    const int i = at.z * p.cstep + at.y * psc(width) + at.x;
    const afp v = buffer_ld1(x, i) * afp(p.factor) + buffer_ld1(offsets, at.z);
    buffer_st1(y, i, v);
}
)";
const char* const kCountGroups = R"(#version 450
layout (binding = 0) buffer Output { uint y[]; };
void main() {
    if (gl_LocalInvocationID == uvec3(0)) atomicAdd(y[0], 1u);
    atomicAdd(y[1], 1u);
    y[2] = gl_WorkGroupSize.x; y[3] = gl_WorkGroupSize.y; y[4] = gl_WorkGroupSize.z;
}
)";
const char* const kThreeBytes = R"(#version 450
layout (binding = 0) readonly buffer Input { uint8_t x[]; };
layout (binding = 1) writeonly buffer Output { uint8_t y[]; };
layout (push_constant) uniform Sizes { int count; } p;
void main() {
    const int i = int(gl_GlobalInvocationID.x);
    if (i < p.count) y[i] = uint8_t(255u - uint(x[i]));
}
)";

int make_pipeline(Pipeline* pipeline, const char* text, const Option& opt,
                  std::vector<vk_specialization_type> constants = {}) {
    std::vector<uint32_t> words;
    QUOLL_RETURN_IF_ERROR(compile_spirv_module(text, opt, words));
    return pipeline->create(words.data(), words.size() * 4, constants);
}

// A layer with a weight, in place on the CPU or of its own memory on a device.
class Affine : public Layer {
public:
    Affine() { one_blob_only = support_inplace = support_vulkan = true; }
    int load_param(const ParamDict& pd) override {
        count_ = pd.get(0, 0);
        return 0;
    }
    int load_model(const ModelBin& mb) override {
        offsets_ = mb.load(count_, 1);
        return offsets_.empty() ? -100 : 0;
    }
    int create_pipeline(const Option& opt) override {
        if (!vkdev) return 0;
        pipeline_.reset(new Pipeline(vkdev));
        pipeline_->set_optimal_local_size_xyz(8, 4, 2);
        vk_specialization_type width;
        width.i = 0;
        return make_pipeline(pipeline_.get(), kAffine, opt, {width});
    }
    int destroy_pipeline(const Option&) override {
        pipeline_.reset();
        return 0;
    }
    int upload_model(VkTransfer& cmd, const Option& opt) override {
        return cmd.record_upload(offsets_, gpu_offsets_, opt);
    }
    int forward_inplace(Mat& m, const Option&) const override {
        cpu_runs++;
        for (int q = 0; q < m.c; q++)
            for (int i = 0; i < m.w * m.h; i++) {
                float* const x = m.channel(q);
                x[i] = 0.5f * x[i] + offsets_[(size_t)q];
            }
        return 0;
    }
    int forward(const VkMat& bottom, VkMat& top, VkCompute& cmd, const Option& opt) const override {
        gpu_runs++;
        EXPECT_TRUE(opt.staging_vkallocator && opt.workspace_vkallocator);
        top.create_like(bottom, opt.blob_vkallocator);
        if (top.empty()) return -100;
        std::vector<vk_constant_type> sizes(5);
        sizes[0].i = top.w, sizes[1].i = top.h, sizes[2].i = top.c;
        sizes[3].i = (int)top.cstep, sizes[4].f = 0.5f;
        return cmd.record_pipeline(pipeline_.get(), {bottom, top, gpu_offsets_}, sizes, top);
    }
    static int cpu_runs, gpu_runs;

private:
    int count_ = 0;
    Mat offsets_;
    VkMat gpu_offsets_;
    std::unique_ptr<Pipeline> pipeline_;
};
int Affine::cpu_runs, Affine::gpu_runs;
DEFINE_LAYER_CREATOR(Affine)

// Neither tells the sizes of its outputs before it runs.
const char* const kNet =
    "7767517\n4 4\nInput in 0 1 in\n"
    "Convolution conv 1 1 in a 0=8 1=3 4=1 5=1 6=216\n"
    "Affine own 1 1 a b 0=8\n"
    "Convolution last 1 1 b out 0=8 1=3 4=1 5=1 6=576\n";

int load(Net* net, bool gpu, bool half) {
    net->register_custom_layer("Affine", Affine_layer_creator);
    net->opt.num_threads = 1;
    net->opt.use_vulkan_compute = gpu;
    net->opt.use_fp16_storage = half;
    QUOLL_RETURN_IF_ERROR(net->load_param_mem(kNet));
    return net->load_model(RandomWeights());
}

Mat image(int n = 1) {
    Mat m;
    m.create(33, 17, 3, 4u, 1, n);
    for (int b = 0; b < n; b++)
        for (int q = 0; q < m.c; q++)
            for (int i = 0; i < m.w * m.h; i++)
                m.batch(b).channel(q)[i] = (float)((i * 37 + q * 11 + b * 5) % 101 - 50) * 0.02f;
    return m;
}

double difference(const Mat& got, const Mat& want) {
    if (got.logical_shape() != want.logical_shape() || got.empty()) return INFINITY;
    double range = 0, most = 0;
    for (int b = 0; b < want.n; b++)
        for (int q = 0; q < want.c; q++)
            for (int i = 0; i < want.w * want.h; i++) {
                const float x = got.batch(b).channel(q)[i], y = want.batch(b).channel(q)[i];
                range = std::max(range, (double)fabsf(y));
                most = std::max(most, (double)fabsf(x - y));
            }
    return range > 0 ? most / range : INFINITY;
}

class VulkanLayers : public testing::Test {
protected:
    void SetUp() override {
        if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    }
};

TEST_F(VulkanLayers, a_layer_of_the_application_runs_on_the_device) {
    for (const bool half : {false, true}) {
        for (const int n : {1, 3}) {
            Net cpu, gpu;
            ASSERT_EQ(0, load(&cpu, false, false));
            ASSERT_EQ(0, load(&gpu, true, half));
            Affine::cpu_runs = Affine::gpu_runs = 0;
            const Mat in = image(n);
            Mat want, got, again;
            Extractor a = cpu.create_extractor(), b = gpu.create_extractor();
            ASSERT_EQ(0, a.input("in", in));
            ASSERT_EQ(0, a.extract("out", want));
            EXPECT_EQ(n, Affine::cpu_runs);
            ASSERT_EQ(0, b.input("in", in));
            ASSERT_EQ(0, b.extract("out", got));
            EXPECT_EQ(n, Affine::cpu_runs);
            EXPECT_EQ(n, Affine::gpu_runs);
            // Three layers of sums of f16 values, of up to 72 terms.
            EXPECT_LT(difference(got, want), half ? 5e-3 : 1e-6) << half << n;
            ASSERT_EQ(0, b.extract("b", again));
            ASSERT_EQ(0, a.extract("b", want));
            EXPECT_LT(difference(again, want), half ? 5e-3 : 1e-6);
        }
    }
}

TEST_F(VulkanLayers, threads_run_a_layer_of_the_application) {
    Net net;
    ASSERT_EQ(0, load(&net, true, false));
    Mat want;
    Extractor first = net.create_extractor();
    ASSERT_EQ(0, first.input("in", image()));
    ASSERT_EQ(0, first.extract("out", want));
    std::vector<std::thread> threads;
    std::vector<double> differences(8, INFINITY);
    for (size_t t = 0; t < differences.size(); t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 3; i++) {
                Extractor ex = net.create_extractor();
                Mat got;
                const int status = ex.input("in", image());
                differences[t] =
                    status == 0 && ex.extract("out", got) == 0 ? difference(got, want) : INFINITY;
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (double d : differences) EXPECT_EQ(0.0, d);
}

TEST_F(VulkanLayers, groups_have_the_size_that_is_set) {
    VulkanDevice* const device = get_gpu_device();
    Option opt;
    Pipeline pipeline(device);
    pipeline.set_local_size_xyz(8, 2, 3);
    ASSERT_EQ(0, make_pipeline(&pipeline, kCountGroups, opt));
    EXPECT_EQ(1, pipeline.shader_info().binding_count);
    EXPECT_EQ(1, pipeline.shader_info().binding_types[0]);
    Mat zeros(5);
    zeros.fill(0.f);
    VkCompute cmd(device);
    VkMat counts, sizes;
    ASSERT_EQ(0, cmd.record_upload(zeros, counts, opt));
    sizes.w = 17, sizes.h = 4, sizes.c = 3;
    ASSERT_EQ(0, cmd.record_pipeline(&pipeline, {counts}, {}, sizes));
    Mat got;
    ASSERT_EQ(0, cmd.record_download(counts, got, opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    const uint32_t* const v = (const uint32_t*)got.data;
    EXPECT_EQ(6u, v[0]);  // 3 x 2 x 1
    EXPECT_EQ(6u * 48, v[1]);
    EXPECT_EQ(8u, v[2]);
    EXPECT_EQ(2u, v[3]);
    EXPECT_EQ(3u, v[4]);
    pipeline.set_optimal_local_size_xyz(4096, 4096, 4096);
    const uint64_t all =
        (uint64_t)pipeline.local_size_x() * pipeline.local_size_y() * pipeline.local_size_z();
    EXPECT_LE(all, device->info.max_workgroup_invocations());
}

TEST_F(VulkanLayers, pixels_of_three_bytes_go_as_they_are) {
    VulkanDevice* const device = get_gpu_device();
    if (!device->info.support_int8_storage()) GTEST_SKIP() << "no 8-bit storage";
    Option opt;
    opt.use_int8_storage = true;
    Pipeline pipeline(device);
    pipeline.set_local_size_xyz(64, 1, 1);
    ASSERT_EQ(0, make_pipeline(&pipeline, kThreeBytes, opt));
    unsigned char pixels[5 * 3 * 3], out[5 * 3 * 3] = {};
    for (size_t i = 0; i < sizeof(pixels); i++) pixels[i] = (unsigned char)(i * 7);
    const Mat in(5, 3, pixels, (size_t)3, 1);
    Mat into(5, 3, out, (size_t)3, 1);
    VkCompute cmd(device);
    VkMat x, y(5, 3, (size_t)3, 1, device->acquire_blob_allocator());
    ASSERT_EQ(0, cmd.record_clone(in, x, opt));
    EXPECT_EQ(sizeof(pixels), x.bytes());
    std::vector<vk_constant_type> count(1);
    count[0].i = (int)sizeof(pixels);
    VkMat sizes;
    sizes.w = (int)sizeof(pixels);
    ASSERT_EQ(0, cmd.record_pipeline(&pipeline, {x, y}, count, sizes));
    ASSERT_EQ(0, cmd.record_clone(y, into, opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    EXPECT_EQ((void*)out, into.data);
    for (size_t i = 0; i < sizeof(pixels); i++) EXPECT_EQ(255 - pixels[i], out[i]) << i;
}

TEST_F(VulkanLayers, a_built_in_layer_runs_by_itself) {
    for (const bool half : {false, true}) {
        Option opt;
        opt.use_fp16_storage = half;
        const std::unique_ptr<Layer> layer(create_layer("Interp"));
        ParamDict pd;
        pd.set(0, 3), pd.set(1, 2.f), pd.set(2, 2.f);
        ASSERT_EQ(0, layer->load_param(pd));
        ASSERT_EQ(0, layer->create_pipeline(opt));
        Mat in = image(), want, got, stored = in;
        ASSERT_EQ(0, layer->forward(in, want, Option()));
        VulkanDevice* const device = get_gpu_device();
        VkCompute cmd(device);
        VkMat x, y;
        if (half) cast_float32_to_float16(in, stored, opt);
        ASSERT_EQ(0, cmd.record_upload(stored, x, opt));
        {
            const LogMute mute;
            EXPECT_NE(0, layer->forward(x, y, cmd, opt));  // on no device
        }
        layer->vkdev = device;
        for (int i = 0; i < 2; i++) ASSERT_EQ(0, layer->forward(x, y, cmd, opt));
        ASSERT_EQ(0, cmd.record_download(y, got, opt));
        ASSERT_EQ(0, cmd.submit_and_wait());
        EXPECT_LT(difference(got, want), half ? 2e-3 : 1e-6);
        layer->destroy_pipeline(opt);
    }
}

// Weights that create_pipeline() has packed for the CPU, and a layer without a form on devices: the
// host runs them, in between.
TEST_F(VulkanLayers, a_built_in_layer_runs_on_the_host_where_it_must) {
    const Mat weights[] = {Mat(8 * 3 * 3 * 3), Mat(8)};
    for (const Mat& m : weights)
        for (size_t i = 0; i < m.total(); i++)
            ((float*)m.data)[i] = (float)(i * 7 % 11) * 0.1f - 0.5f;
    for (const char* type : {"Convolution", "SPP"}) {
        const Option opt;
        const std::unique_ptr<Layer> layer(create_layer(type));
        ParamDict pd;
        if (type[0] == 'C') pd.set(0, 8), pd.set(1, 3), pd.set(5, 1), pd.set(6, 216);
        if (type[0] == 'S') pd.set(0, 0), pd.set(1, 2);
        layer->vkdev = get_gpu_device();
        ASSERT_EQ(0, layer->load_param(pd));
        ASSERT_EQ(0, layer->load_model(ModelBinFromMatArray(weights)));
        ASSERT_EQ(0, layer->create_pipeline(opt));
        Mat want, got;
        ASSERT_EQ(0, layer->forward(image(), want, opt));
        VkCompute cmd(layer->vkdev);
        VkMat x, y;
        ASSERT_EQ(0, cmd.record_upload(image(), x, opt));
        ASSERT_EQ(0, layer->forward(x, y, cmd, opt));
        ASSERT_EQ(0, cmd.record_download(y, got, opt));
        ASSERT_EQ(0, cmd.submit_and_wait());
        if (want.elempack != 1) convert_packing(Mat(want), want, 1);
        EXPECT_LT(difference(got, want), 1e-6) << type;
        layer->destroy_pipeline(opt);
    }
}

TEST_F(VulkanLayers, batches_of_unlike_counts_are_refused) {
    const Option opt;
    const std::unique_ptr<Layer> layer(create_layer("ROIPooling"));
    ParamDict pd;
    pd.set(0, 2), pd.set(1, 2);
    layer->vkdev = get_gpu_device();
    ASSERT_EQ(0, layer->load_param(pd));
    ASSERT_EQ(0, layer->create_pipeline(opt));
    Shape map(8, 8, 4), region(4);
    map.n = 2, region.n = 3;
    VkCompute cmd(layer->vkdev);
    std::vector<VkMat> in(2), out(1);
    for (int i = 0; i < 2; i++) {
        Mat m(i == 0 ? map : region);
        m.fill(1.f);
        ASSERT_EQ(0, cmd.record_upload(m, in[i], opt));
    }
    EXPECT_NE(0, layer->forward(in, out, cmd, opt));
    layer->destroy_pipeline(opt);
}

// A layer of the application sees no items that are not there.
class SeenItems : public Layer {
public:
    SeenItems() { support_vulkan = true; }
    int forward(const std::vector<VkMat>& bottoms, std::vector<VkMat>& tops, VkCompute& cmd,
                const Option& opt) const override {
        for (const VkMat& m : bottoms) EXPECT_FALSE(m.empty());
        return cmd.record_clone(bottoms[0], tops[0], opt);
    }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option&) const override {
        tops[0] = bottoms[0].clone();
        return 0;
    }
};
DEFINE_LAYER_CREATOR(SeenItems)

TEST_F(VulkanLayers, own_layers_get_no_batches_of_unlike_counts) {
    const LogMute mute;
    for (const int items : {1, 2, 3}) {
        Net net;
        net.register_custom_layer("SeenItems", SeenItems_layer_creator);
        net.opt.use_vulkan_compute = true;
        ASSERT_EQ(0, net.load_param_mem("7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\n"
                                        "SeenItems own 2 1 a b out\n"));
        ASSERT_EQ(0, net.load_model(RandomWeights()));
        Extractor ex = net.create_extractor();
        ASSERT_EQ(0, ex.input("a", image(3)));
        ASSERT_EQ(0, ex.input("b", image(items)));
        Mat out;
        EXPECT_EQ(items != 2, ex.extract("out", out) == 0) << items;
    }
}

// Item by item, as the layer takes one at a time.
TEST_F(VulkanLayers, the_host_runs_all_items) {
    const Option opt;
    const std::unique_ptr<Layer> layer(create_layer("SPP"));
    ParamDict pd;
    pd.set(0, 0), pd.set(1, 2);
    layer->vkdev = get_gpu_device();
    ASSERT_EQ(0, layer->load_param(pd));
    ASSERT_EQ(0, layer->create_pipeline(opt));
    Shape shape = image().logical_shape();
    shape.n = 2;
    const Mat batch(shape);
    Mat want[2], got;
    for (int b = 0; b < 2; b++) {
        Mat item = image();
        for (int q = 0; q < item.c; q++) {
            for (int i = 0; i < item.w * item.h; i++) item.channel(q)[i] += (float)(b * (q + 1));
            memcpy((float*)batch.batch(b).channel(q).data, item.channel(q).data,
                   (size_t)item.w * item.h * sizeof(float));
        }
        ASSERT_EQ(0, layer->forward(item, want[b], opt));
    }
    VkCompute cmd(layer->vkdev);
    VkMat x, y;
    ASSERT_EQ(0, cmd.record_upload(batch, x, opt));
    ASSERT_EQ(0, layer->forward(x, y, cmd, opt));
    ASSERT_EQ(0, cmd.record_download(y, got, opt));
    ASSERT_EQ(0, cmd.submit_and_wait());
    ASSERT_EQ(2, got.n);
    for (int b = 0; b < 2; b++) EXPECT_LT(difference(got.batch(b), want[b]), 1e-6) << b;
    layer->destroy_pipeline(opt);
}

// In place, what is no output stays: the scale that comes as an input.
TEST_F(VulkanLayers, inputs_stay_in_place) {
    const std::unique_ptr<Layer> layer(create_layer_naive("Scale"));
    ParamDict pd;
    pd.set(0, -233);
    layer->vkdev = get_gpu_device();
    ASSERT_EQ(0, layer->load_param(pd));
    Mat scale(3);
    for (int i = 0; i < 3; i++) scale[i] = (float)i - 0.5f;
    std::vector<Mat> want(1);
    ASSERT_EQ(0, layer->forward({image(), scale}, want, Option()));
    want.push_back(scale);
    VkCompute cmd(layer->vkdev);
    std::vector<VkMat> blobs(2);
    std::vector<Mat> got(2);
    ASSERT_EQ(0, cmd.record_upload(image(), blobs[0], Option()));
    ASSERT_EQ(0, cmd.record_upload(scale, blobs[1], Option()));
    ASSERT_EQ(0, layer->forward_inplace(blobs, cmd, Option()));
    for (int i = 0; i < 2; i++) ASSERT_EQ(0, cmd.record_download(blobs[i], got[i], Option()));
    ASSERT_EQ(0, cmd.submit_and_wait());
    for (int i = 0; i < 2; i++) EXPECT_LT(difference(got[i], want[i]), 1e-6) << i;
}

TEST_F(VulkanLayers, what_does_not_fit_is_refused) {
    const LogMute mute;
    VulkanDevice* const device = get_gpu_device();
    Option opt;
    std::vector<uint32_t> words;
    EXPECT_NE(0, compile_spirv_module("void main() {}", opt, words));
    EXPECT_NE(0, compile_spirv_module("#version 450\nvoid main() { nothing(); }\n", opt, words));
    EXPECT_NE(0, compile_spirv_module("", 0, opt, words));
    Pipeline pipeline(device);
    const uint32_t junk[8] = {0x07230203, 0, 0, 0, 0, 9u << 16};
    EXPECT_NE(0, pipeline.create(junk, sizeof(junk), {}));
    EXPECT_NE(0, pipeline.create(junk, 7, {}));
    VkCompute cmd(device);
    VkMat m(4, (size_t)4u, device->acquire_blob_allocator());
    EXPECT_NE(0, cmd.record_pipeline(&pipeline, {m}, {}, m));  // not created
    EXPECT_NE(0, cmd.submit_and_wait());
    ASSERT_EQ(0, make_pipeline(&pipeline, kCountGroups, opt));
    EXPECT_NE(0, cmd.record_pipeline(&pipeline, {m, m}, {}, m));
    EXPECT_NE(0, cmd.record_pipeline(&pipeline, {m}, std::vector<vk_constant_type>(33), m));
    cmd.reset();
    EXPECT_EQ(0, cmd.record_pipeline(&pipeline, {VkMat()}, {}, m));  // bound as nothing
    EXPECT_EQ(0, cmd.submit_and_wait());
}

}  // namespace
}  // namespace quoll
