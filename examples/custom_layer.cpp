// A layer of one's own: parameters, weights and a forward function, made known to a Net before it
// is loaded. C++11, as an application may be.
#include <stdio.h>

#include <quoll/layer.h>
#include <quoll/net.h>

#include "usage.h"

using namespace quoll;

// x = (x + eps) * gamma, one gamma for each channel.
class MyLayer : public Layer {
public:
    MyLayer();
    virtual int load_param(const ParamDict& pd);
    virtual int load_model(const ModelBin& mb);
    virtual int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const;
    virtual int forward_inplace(Mat& bottom_top_blob, const Option& opt) const;

private:
    int channels;
    float eps;
    Mat gamma_data;
};

DEFINE_LAYER_CREATOR(MyLayer)

MyLayer::MyLayer() {
    // One input and one output, and the output may overwrite the input.
    one_blob_only = true;
    support_inplace = true;
}

int MyLayer::load_param(const ParamDict& pd) {
    channels = pd.get(0, 0);  // "0=<int>" in the param file, 0 when absent
    eps = pd.get(1, 0.001f);  // "1=<float>"
    return 0;
}

int MyLayer::load_model(const ModelBin& mb) {
    gamma_data = mb.load(channels, 1);  // 1: floats without a tag
    if (gamma_data.empty()) return -100;
    return 0;
}

// Without this function forward_inplace would run on a copy.
int MyLayer::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    if (bottom_blob.c != channels) return -1;
    const int size = bottom_blob.w * bottom_blob.h;
    top_blob.create(bottom_blob.w, bottom_blob.h, channels, bottom_blob.elemsize,
                    opt.blob_allocator);
    if (top_blob.empty()) return -100;

#pragma omp parallel for num_threads(opt.num_threads)
    for (int q = 0; q < channels; q++) {
        const float* ptr = bottom_blob.channel(q);
        float* outptr = top_blob.channel(q);
        const float gamma = gamma_data[q];
        for (int i = 0; i < size; i++) outptr[i] = (ptr[i] + eps) * gamma;
    }
    return 0;
}

int MyLayer::forward_inplace(Mat& bottom_top_blob, const Option& opt) const {
    if (bottom_top_blob.c != channels) return -1;
    const int size = bottom_top_blob.w * bottom_top_blob.h;

#pragma omp parallel for num_threads(opt.num_threads)
    for (int q = 0; q < channels; q++) {
        float* ptr = bottom_top_blob.channel(q);
        const float gamma = gamma_data[q];
        for (int i = 0; i < size; i++) ptr[i] = (ptr[i] + eps) * gamma;
    }
    return 0;
}

// A model with the layer between two others.
static const char kParam[] =
    "7767517\n"
    "3 3\n"
    "Input    input   0 1 input\n"
    "MyLayer  mylayer 1 1 input mylayer0 0=2 1=1.0\n"
    "ReLU     relu    1 1 mylayer0 relu\n";
static const float kGamma[2] = {2.f, -1.f};

int main(int argc, char** argv) {
    int code;
    if (usage(argc, argv, argc == 1, "usage: custom_layer\nRuns a layer of its own.\n", &code))
        return code;
    Net net;
    net.register_custom_layer("MyLayer", MyLayer_layer_creator);
    if (net.load_param_mem(kParam)) return 1;
    if (net.load_model((const unsigned char*)kGamma, sizeof(kGamma)) != (int)sizeof(kGamma))
        return 1;

    Mat in(2, 1, 2);  // w 2, h 1, c 2
    in.channel(0)[0] = 1.f, in.channel(0)[1] = -3.f;
    in.channel(1)[0] = 1.f, in.channel(1)[1] = -3.f;
    Extractor ex = net.create_extractor();
    Mat out;
    if (ex.input("input", in) || ex.extract("relu", out)) return 1;

    // (x + 1) * gamma, negative values cut off.
    const float expected[2][2] = {{4.f, 0.f}, {0.f, 2.f}};
    int wrong = 0;
    for (int q = 0; q < 2; q++)
        for (int i = 0; i < 2; i++) {
            printf("channel %d, x %d: %g\n", q, i, out.channel(q)[i]);
            wrong += out.channel(q)[i] != expected[q][i];
        }
    return wrong ? 1 : 0;
}
