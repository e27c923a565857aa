// Pixels on a device: the same bits as Mat::from_pixels_roi_resize, substract_mean_normalize and
// to_pixels_resize, which are tested against ncnn's, and ncnn's own cases. Skipped where there is
// no device.
#include <gtest/gtest.h>

#include "mat_helpers.h"
#include "pixel_cases.h"
#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/image.h"
#include "quoll/net.h"
#include "random_weights.h"
#include "runtime/log_mute.h"

#if QUOLL_PIXEL

namespace quoll {
namespace {

const int kFormats[] = {Mat::PIXEL_RGB, Mat::PIXEL_BGR, Mat::PIXEL_GRAY, Mat::PIXEL_RGBA,
                        Mat::PIXEL_BGRA};
const int kChannels[] = {3, 3, 1, 4, 4};
const float kMean[] = {104.25f, 117.f, 122.5f, 3.f}, kNorm[] = {0.017f, 1 / 58.395f, 2.5f, 0.3f};

int pixel_type(int source, int target) {
    return source == target ? kFormats[source]
                            : kFormats[source] | kFormats[target] << Mat::PIXEL_CONVERT_SHIFT;
}

std::vector<unsigned char> random_image(size_t bytes, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<unsigned char> image(bytes);
    for (unsigned char& b : image) b = (unsigned char)random();
    return image;
}

class VulkanPixels : public testing::Test {
protected:
    void SetUp() override {
        if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    }
    Mat on_device(const unsigned char* pixels, int type, int w, int h, int stride,
                  const VkPixelSteps& steps, const Option& opt = Option()) {
        VkCompute cmd(get_gpu_device());
        VkMat there;
        Mat back;
        EXPECT_EQ(0, cmd.record_from_pixels(pixels, type, w, h, stride, there, opt, steps));
        EXPECT_EQ(0, cmd.record_download(there, back, opt));
        EXPECT_EQ(0, cmd.submit_and_wait());
        return back;
    }
};

VkPixelSteps resized_to(int w, int h) {
    VkPixelSteps steps;
    steps.target_width = w, steps.target_height = h;
    return steps;
}

VkPixelSteps rectangle(int x, int y, int w, int h) {
    VkPixelSteps steps;
    steps.roix = x, steps.roiy = y, steps.roiw = w, steps.roih = h;
    return steps;
}

TEST_F(VulkanPixels, agree_with_ncnn) {
    int count = 0;
    for (const PixelCase& c : pixel_cases("from_pixels")) {
        const std::vector<int>& p = c.params;
        const bool roi = c.op.find("roi") != std::string::npos;
        const size_t target = roi ? 8 : 4;
        VkPixelSteps steps = roi ? rectangle(p[4], p[5], p[6], p[7]) : VkPixelSteps();
        if (c.op.find("resize") != std::string::npos)
            steps.target_width = p[target], steps.target_height = p[target + 1];
        expect_result(on_device(c.given.bytes.data(), p[0], p[1], p[2], p[3], steps), c.expected,
                      0.f, c.name());
        count++;
    }
    EXPECT_GT(count, 20);
}

TEST_F(VulkanPixels, formats_sizes_mean_and_norm) {
    const int w = 19, h = 11;
    const int targets[][2] = {{19, 11}, {7, 5}, {40, 23}, {1, 1}, {19, 30}};
    for (int s = 0; s < 5; s++) {
        for (int t = 0; t < 5; t++) {
            const int stride = w * kChannels[s] + s, type = pixel_type(s, t);
            const std::vector<unsigned char> img = random_image((size_t)stride * h, s * 5 + t);
            for (const auto& size : targets) {
                VkPixelSteps steps = rectangle(2, 1, 15, 9);
                steps.target_width = size[0], steps.target_height = size[1];
                steps.mean_vals = t % 2 ? kMean : nullptr,
                steps.norm_vals = t < 4 ? kNorm : nullptr;
                Mat want = Mat::from_pixels_roi_resize(img.data(), type, w, h, stride, 2, 1, 15, 9,
                                                       size[0], size[1]);
                want.substract_mean_normalize(steps.mean_vals, steps.norm_vals);
                EXPECT_EQ(0,
                          count_differences(on_device(img.data(), type, w, h, stride, steps), want))
                    << s << " to " << t << ", " << size[0] << " x " << size[1];
            }
        }
    }
}

TEST_F(VulkanPixels, one_row_one_column_bottom_up) {
    const std::vector<unsigned char> img = random_image(3 * 8 * 8, 3);
    for (const auto& size : {std::pair<int, int>(1, 8), {8, 1}, {1, 1}}) {
        const Mat want =
            Mat::from_pixels_resize(img.data(), Mat::PIXEL_RGB, size.first, size.second, 5, 4);
        EXPECT_EQ(0, count_differences(on_device(img.data(), Mat::PIXEL_RGB, size.first,
                                                 size.second, 0, resized_to(5, 4)),
                                       want));
    }
    const Mat up = on_device(img.data() + 24, Mat::PIXEL_RGB, 8, 2, -24, VkPixelSteps());
    EXPECT_EQ(0,
              count_differences(up, Mat::from_pixels(img.data() + 24, Mat::PIXEL_RGB, 8, 2, -24)));
}

TEST_F(VulkanPixels, back) {
    const int w = 17, h = 9;
    std::mt19937 random(5);
    std::uniform_real_distribution<float> value(-40.f, 300.f);
    for (int s = 0; s < 5; s++) {
        Mat m(w, h, kChannels[s]);
        for (int q = 0; q < m.c; q++)
            for (int i = 0; i < w * h; i++) m.channel(q)[i] = value(random);
        m.channel(0)[3] = NAN, m.channel(0)[4] = INFINITY, m.channel(0)[5] = -INFINITY;
        for (int t = 0; t < 5; t++) {
            for (const auto& size : {std::pair<int, int>(w, h), {8, 5}, {30, 31}}) {
                const int row = size.first * kChannels[t], stride = row + t;
                std::vector<unsigned char> want((size_t)stride * size.second, 7), got = want;
                m.to_pixels_resize(want.data(), pixel_type(s, t), size.first, size.second, stride);
                VkCompute cmd(get_gpu_device());
                VkMat there;
                ASSERT_EQ(0, cmd.record_upload(m, there, Option()));
                ASSERT_EQ(0, cmd.record_to_pixels(there, got.data(), pixel_type(s, t), stride,
                                                  Option(), resized_to(size.first, size.second)));
                ASSERT_EQ(0, cmd.submit_and_wait());
                EXPECT_TRUE(got == want) << s << " to " << t << ", " << size.first;
            }
        }
    }
}

TEST_F(VulkanPixels, back_with_mean_and_norm) {
    Mat m(6, 5, 3);
    for (int q = 0; q < 3; q++)
        for (int i = 0; i < 30; i++) m.channel(q)[i] = (float)((i * 7 + q) % 11) / 5.f - 1.f;
    const float mean[] = {-1.f, -0.5f, 0.f}, norm[] = {127.5f, 100.f, 300.f};
    VkPixelSteps steps;
    steps.mean_vals = mean, steps.norm_vals = norm;
    std::vector<unsigned char> want(90), got(90);
    Mat scaled = m.clone();
    scaled.substract_mean_normalize(mean, norm);
    scaled.to_pixels(want.data(), Mat::PIXEL_RGB2BGR);
    VkCompute cmd(get_gpu_device());
    VkMat there;
    ASSERT_EQ(0, cmd.record_upload(m, there, Option()));
    ASSERT_EQ(0, cmd.record_to_pixels(there, got.data(), Mat::PIXEL_RGB2BGR, 0, Option(), steps));
    ASSERT_EQ(0, cmd.submit_and_wait());
    EXPECT_TRUE(got == want);
}

// Pixels in, pixels out: one submission, and the host sees bytes alone.
TEST_F(VulkanPixels, through_a_net) {
    const char* const text =
        "7767517\n3 3\nInput in 0 1 in\n"
        "Convolution conv 1 1 in a 0=3 1=3 4=1 5=1 6=81 9=4\n"
        "Interp up 1 1 a out 0=2 1=2.0 2=2.0\n";
    for (const bool half : {false, true}) {
        Net net;
        net.opt.num_threads = 1;
        net.opt.use_vulkan_compute = true, net.opt.use_fp16_storage = half;
        ASSERT_EQ(0, net.load_param_mem(text));
        ASSERT_EQ(0, net.load_model(RandomWeights()));
        const std::vector<unsigned char> img = random_image(40 * 30 * 3, 1);
        Mat in = Mat::from_pixels_resize(img.data(), Mat::PIXEL_BGR2RGB, 40, 30, 16, 12), out;
        in.substract_mean_normalize(kMean, kNorm);
        Extractor ex = net.create_extractor();
        ASSERT_EQ(0, ex.input("in", in));
        ASSERT_EQ(0, ex.extract("out", out));
        const float scale[] = {255.f, 255.f, 255.f};
        out.substract_mean_normalize(nullptr, scale);
        std::vector<unsigned char> want(32 * 24 * 3), got(want.size());
        out.to_pixels(want.data(), Mat::PIXEL_RGB);

        VkCompute cmd(net.vulkan_device());
        Extractor again = net.create_extractor();
        VkMat there, made;
        VkPixelSteps steps = resized_to(16, 12), scaled;
        steps.mean_vals = kMean, steps.norm_vals = kNorm;
        scaled.norm_vals = scale;
        ASSERT_EQ(0, cmd.record_from_pixels(img.data(), Mat::PIXEL_BGR2RGB, 40, 30, 0, there,
                                            net.opt, steps));
        EXPECT_EQ(half ? DType::f16 : DType::f32, there.dtype);
        ASSERT_EQ(0, again.input("in", there));
        ASSERT_EQ(0, again.extract("out", made, cmd));
        ASSERT_EQ(0, cmd.record_to_pixels(made, got.data(), Mat::PIXEL_RGB, 0, net.opt, scaled));
        ASSERT_EQ(0, cmd.submit_and_wait());
        EXPECT_TRUE(got == want);
    }
}

// A VkMat of the right sizes is filled where it lies.
TEST_F(VulkanPixels, items_of_a_batch) {
    const std::vector<unsigned char> img = random_image(2 * 9 * 7 * 3, 9);
    VkCompute cmd(get_gpu_device());
    VkMat batch;
    Mat back;
    batch.create(9, 7, 3, 4u, 1, 2, get_gpu_device()->acquire_blob_allocator());
    for (int b = 0; b < 2; b++) {
        VkMat item = batch.batch(b);
        ASSERT_EQ(0, cmd.record_from_pixels(img.data() + b * 9 * 7 * 3, Mat::PIXEL_RGB, 9, 7, 0,
                                            item, Option()));
        EXPECT_EQ(item.data, batch.data);
    }
    ASSERT_EQ(0, cmd.record_download(batch, back, Option()));
    ASSERT_EQ(0, cmd.submit_and_wait());
    for (int b = 0; b < 2; b++)
        EXPECT_EQ(0, count_differences(back.batch(b), Mat::from_pixels(img.data() + b * 9 * 7 * 3,
                                                                       Mat::PIXEL_RGB, 9, 7)));
}

// Cameras' planes: what yuv420sp2rgb and then Mat::from_pixels_roi_resize make of them.
TEST_F(VulkanPixels, of_yuv) {
    for (const auto& image : {std::pair<int, int>(18, 10), {19, 11}, {2, 2}, {1, 1}}) {
        const int w = image.first, h = image.second, across = (w + 1) / 2, down = (h + 1) / 2;
        const std::vector<unsigned char> nv21 = random_image((size_t)w * h + 2 * across * down, w);
        std::vector<unsigned char> i420 = nv21, rgb((size_t)w * h * 3);
        for (int i = 0; i < across * down; i++) {
            i420[w * h + across * down + i] = nv21[w * h + 2 * i];  // V
            i420[w * h + i] = nv21[w * h + 2 * i + 1];
        }
        for (VkPixelSteps::Yuv kind :
             {VkPixelSteps::kNv21, VkPixelSteps::kNv12, VkPixelSteps::kI420}) {
            const bool nv12 = kind == VkPixelSteps::kNv12;
            if (nv12)
                yuv420sp2rgb_nv12(nv21.data(), w, h, rgb.data());
            else
                yuv420sp2rgb(nv21.data(), w, h, rgb.data());
            const unsigned char* pixels = kind == VkPixelSteps::kI420 ? i420.data() : nv21.data();
            for (int type : {(int)Mat::PIXEL_RGB, (int)Mat::PIXEL_RGB2BGR, (int)Mat::PIXEL_RGB2GRAY,
                             (int)Mat::PIXEL_RGB2RGBA})
                for (int target : {0, 5, 31}) {
                    const bool part = w > 10 && target;
                    VkPixelSteps steps = part ? rectangle(3, 1, w - 4, h - 2) : VkPixelSteps();
                    steps.yuv = kind, steps.mean_vals = kMean, steps.norm_vals = kNorm;
                    steps.target_width = target, steps.target_height = target;
                    const int rw = part ? w - 4 : w, rh = part ? h - 2 : h;
                    Mat want = Mat::from_pixels_roi_resize(
                        rgb.data(), type, w, h, w * 3, part ? 3 : 0, part ? 1 : 0, rw, rh,
                        target ? target : rw, target ? target : rh);
                    want.substract_mean_normalize(kMean, kNorm);
                    EXPECT_EQ(0, count_differences(on_device(pixels, type, w, h, 0, steps), want))
                        << kind << " of " << w << " x " << h << " to " << target;
                }
        }
    }
    const LogMute mute;
    const std::vector<unsigned char> img = random_image(6 * 4 * 2, 4);
    VkCompute cmd(get_gpu_device());
    VkMat there;
    VkPixelSteps steps;
    steps.yuv = VkPixelSteps::kNv21;
    const Option opt;
    EXPECT_NE(0, cmd.record_from_pixels(img.data(), Mat::PIXEL_BGR, 6, 4, 0, there, opt, steps));
    EXPECT_NE(0, cmd.record_from_pixels(img.data(), Mat::PIXEL_RGB, 6, 4, 18, there, opt, steps));
    EXPECT_NE(0, cmd.record_from_pixels(img.data(), Mat::PIXEL_RGB, 0, 4, 0, there, opt, steps));
    cmd.reset();
    ASSERT_EQ(0, cmd.record_from_pixels(img.data(), Mat::PIXEL_RGB, 6, 4, 6, there, opt, steps));
    unsigned char out[6 * 4 * 3];
    EXPECT_NE(0, cmd.record_to_pixels(there, out, Mat::PIXEL_RGB, 0, opt, steps));
}

TEST_F(VulkanPixels, what_is_wrong_is_refused) {
    const LogMute mute;
    const std::vector<unsigned char> img = random_image(8 * 8 * 3, 2);
    VkCompute cmd(get_gpu_device());
    VkMat there;
    const Option opt;
    const unsigned char* p = img.data();
    EXPECT_NE(0, cmd.record_from_pixels(p, 77, 8, 8, 0, there, opt));
    EXPECT_NE(0, cmd.record_from_pixels(nullptr, Mat::PIXEL_RGB, 8, 8, 0, there, opt));
    EXPECT_NE(0, cmd.record_from_pixels(p, Mat::PIXEL_RGB, 8, 8, 23, there, opt));
    EXPECT_NE(0, cmd.record_from_pixels(p, Mat::PIXEL_RGB, 0, 8, 0, there, opt));
    EXPECT_NE(
        0, cmd.record_from_pixels(p, Mat::PIXEL_RGB, 8, 8, 0, there, opt, rectangle(4, 0, 5, 8)));
    EXPECT_NE(0, cmd.record_from_pixels(p, Mat::PIXEL_RGB, 8, 8, 0, there, opt, resized_to(-1, 4)));
    EXPECT_NE(0, cmd.submit_and_wait());
    ASSERT_EQ(0, cmd.record_from_pixels(p, Mat::PIXEL_RGB, 8, 8, 0, there, opt));
    unsigned char out[8 * 8 * 4];
    EXPECT_NE(0, cmd.record_to_pixels(VkMat(), out, Mat::PIXEL_RGB, 0, opt));
    EXPECT_NE(0, cmd.record_to_pixels(there, out, Mat::PIXEL_RGBA, 0, opt));
    EXPECT_NE(0, cmd.record_to_pixels(there, nullptr, Mat::PIXEL_RGB, 0, opt));
    EXPECT_NE(0, cmd.record_to_pixels(there, out, Mat::PIXEL_RGB, 23, opt));
    EXPECT_NE(0, cmd.record_to_pixels(there, out, Mat::PIXEL_RGB, 0, opt, rectangle(0, 0, 4, 4)));
    EXPECT_NE(0, cmd.submit_and_wait());
    EXPECT_NE(0, VkCompute(nullptr).record_from_pixels(p, Mat::PIXEL_RGB, 8, 8, 0, there, opt));
}

}  // namespace
}  // namespace quoll

#endif
