// Layers on a Vulkan device, a region of one layer each, against the scalar reference: blobs of
// f32, f16 and bf16 on the host, of f32, f16 and, where it has those, bf16 on the device. Without a
// device the tests are skipped.
#include "quoll/gpu.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <iterator>

#include "layer_test_private.h"
#include "quoll/datareader.h"
#if QUOLL_VULKAN
#include "layer/vulkan/compiled_region.h"
#include "layer/vulkan/conv_tiles.h"
#include "layer/vulkan/vulkan_backend.h"
#include "layer/vulkan/winograd_vulkan.h"
#endif

namespace quoll {

#if QUOLL_VULKAN

namespace {

// A layer as a Net prepares it: loaded, before create_pipeline.
LayerPtr loaded_layer(const char* type, const LayerCase& c, const PreparedCase& p) {
    LayerPtr layer(create_layer_reference(type));
    layer->name = "test";
    ParamDict pd;
    const unsigned char* text = (const unsigned char*)c.params.c_str();
    const ModelBinFromMatArray model(p.weights.data());
    for (size_t i = 0; i < c.inputs.size(); i++) layer->bottoms.push_back((int)i);
    for (int i = 0; i < c.output_count; i++) layer->tops.push_back((int)(c.inputs.size() + i));
    EXPECT_EQ(0, pd.load_param(DataReaderFromMemory(text, c.params.size()), type));
    EXPECT_EQ(0, layer->load_param(pd));
    EXPECT_EQ(0, layer->load_model(model));
    return layer;
}

Region region_of(const Layer& layer, const std::vector<Mat>& inputs,
                 const std::vector<Shape>& outputs) {
    Region region;
    RegionStep step;
    step.layer = &layer;
    for (size_t i = 0; i < inputs.size(); i++) {
        RegionValue value;
        value.blob = (int)i, value.shape = inputs[i].logical_shape(), value.made = -1;
        step.inputs.push_back((int)region.values.size());
        region.values.push_back(value);
    }
    for (size_t i = 0; i < outputs.size(); i++) {
        RegionValue value;
        value.blob = (int)(inputs.size() + i), value.shape = outputs[i], value.made = 0,
        value.last_read = 1;
        value.is_downloaded = true;
        step.outputs.push_back((int)region.values.size());
        region.values.push_back(value);
    }
    region.steps.push_back(step);
    return region;
}

// Products that are added up as halves, where they are (docs/vulkan.md, "Half floats").
struct HalfSums {
    std::vector<Mat> errors;  // of the outputs, at most
    int dispatches = 0;
    void count(const Program& program) {
        for (const Dispatch& d : program.dispatches)
            dispatches += std::string(shader_name(d.key.shader)).find("_half") != std::string::npos;
    }
};

// want: the outputs of each item of the batch. False if the device does not run such a layer.
bool run_region(const VulkanBackend& backend, const Layer& layer, const std::vector<Mat>& inputs,
                const std::vector<std::vector<Mat>>& want, const PreparedCase& stored,
                DType storage, const Option& opt, HalfSums* halves = nullptr) {
    std::vector<Shape> outputs = logical_shapes(want[0]);
    for (Shape& shape : outputs) {
        shape.n = (int)want.size();
        if (shape.dtype == DType::f32) shape.dtype = storage;
    }
    if (!backend.supports(layer, logical_shapes(inputs), outputs)) return false;
    const std::shared_ptr<const CompiledRegion> compiled =
        backend.compile(region_of(layer, inputs, outputs), opt);
    EXPECT_TRUE(compiled != nullptr);
    if (halves && compiled) halves->count(as_vulkan(*compiled).program());
    const bool rounds = halves && halves->dispatches > 0;
    for (int run = 0; run < 2 && compiled; run++) {  // the second one finds the first one's memory
        std::vector<Mat> got;
        EXPECT_EQ(0, compiled->run(inputs, &got, opt));
        EXPECT_EQ(outputs.size(), got.size());
        for (size_t i = 0; i < got.size(); i++)
            for (size_t item = 0; item < want.size(); item++)
                EXPECT_TRUE(nearly_equal(
                    from_storage(want.size() == 1 ? got[i] : got[i].batch((int)item)),
                    want[item][i], stored.tolerance, rounds ? halves->errors[i] : Mat()))
                    << "output " << i << ", item " << item;
    }
    return true;
}

// The values of each channel the other way round.
Mat turned(const Mat& m) {
    const Mat back = m.clone();
    const size_t size = (size_t)m.w * m.h * m.d;
    for (int q = 0; q < m.c; q++) {
        float* channel = (float*)back.data + q * back.cstep;
        std::reverse(channel, channel + size);
    }
    return back;
}

Mat both_items(const Mat& first, const Mat& second) {
    Shape shape = first.logical_shape();
    shape.n = 2;
    Mat both(shape);
    const size_t size = (size_t)first.w * first.h * first.d * first.elemsize;
    for (int i = 0; i < 2; i++) {
        const Mat& from = i == 0 ? first : second;
        for (int q = 0; q < from.c; q++)
            memcpy((char*)both.batch(i).data + q * both.cstep * both.elemsize,
                   (const char*)from.data + q * from.cstep * from.elemsize, size);
    }
    return both;
}

// Two items in each blob of floats, the second one with the first one's values the other way round;
// blobs of integers serve both.
void check_batch(const VulkanBackend& backend, const Layer& layer, const char* type,
                 const LayerCase& c, const PreparedCase& p, DType storage, const Option& opt) {
    SCOPED_TRACE("a batch of two");
    PreparedCase back = p;
    for (Mat& m : back.inputs) {
        if (m.n != 1) return;
        if (m.dtype == DType::f32) m = turned(m);
    }
    std::vector<std::vector<Mat>> want(2);
    const PreparedCase items[] = {stored_case(type, c, p, storage, &want[0]),
                                  stored_case(type, c, back, storage, &want[1])};
    if (want[1].empty() || logical_shapes(want[0]) != logical_shapes(want[1])) return;
    std::vector<Mat> inputs;
    for (size_t i = 0; i < p.inputs.size(); i++) {
        const Mat &first = items[0].inputs[i], &second = items[1].inputs[i];
        inputs.push_back(p.inputs[i].dtype == DType::f32 ? both_items(first, second) : first);
    }
    if (inputs[0].n != 2) return;
    run_region(backend, layer, inputs, want, items[0], storage, opt);
}

// False if the device does not run such a layer.
bool check_case(const char* type, const LayerCase& c, const PreparedCase& p, DType storage) {
    if (p.inputs.empty()) return false;
    std::vector<Mat> want;
    const PreparedCase stored = stored_case(type, c, p, storage, &want);
    Option opt;
    opt.num_threads = 1;
    opt.use_fp16_storage = storage == DType::f16;
    opt.use_bf16_storage = storage == DType::bf16;
    const std::unique_ptr<VulkanBackend> backend =
        VulkanBackend::create(get_default_gpu_index(), opt);
    EXPECT_TRUE(backend != nullptr);
    EXPECT_FALSE(want.empty()) << "the reference failed";
    if (!backend || want.empty()) return false;
    const LayerPtr layer = loaded_layer(type, c, p);
    EXPECT_EQ(0, backend->prepare(*layer, opt));
    if (!run_region(*backend, *layer, stored.inputs, {want}, stored, storage, opt)) return false;
    check_batch(*backend, *layer, type, c, p, storage, opt);
    return true;
}

// Operators that multiply halves. Outputs of the first seven are sums of products, to which an
// activation is applied.
const char* const kMultiply[] = {"Convolution",
                                 "Convolution3D",
                                 "ConvolutionDepthWise",
                                 "ConvolutionDepthWise3D",
                                 "Gemm",
                                 "InnerProduct",
                                 "MatMul",
                                 "Einsum",
                                 "MultiHeadAttention"};
const size_t kSumsOfProducts = 7;

// Turns a layer of sums of products into one of the sums of their magnitudes.
class ToMagnitudes : public ParamVisitor {
public:
    void operator()(int, const char* name, int& field, int, const char*, Range) override {
        if (strcmp(name, "activation_type") == 0) field = 0;
    }
    void operator()(int, const char*, float& field, float, const char*, Range) override {
        field = fabsf(field);
    }
    void ints(int, const char*, Mat&, const char*, Range) override {}
    void floats(int, const char*, Mat&, const char*, Range) override {}
    void operator()(int, const char*, std::string&, const char*, const char*) override {}
};

void make_magnitudes(Mat* m, double factor) {
    if (m->dtype != DType::f32) return;
    *m = m->clone();
    for (int q = 0; q < m->c; q++)
        for (int i = 0; i < m->w * m->h * m->d; i++)
            m->channel(q)[i] = (float)(factor * fabs(m->channel(q)[i]));
}

// What each value may be wrong by: the bound of docs/vulkan.md, times the steepest slope of the
// activations in the tables.
std::vector<Mat> errors_of_halves(const char* type, const LayerCase& c,
                                  const PreparedCase& stored) {
    const double kBound = pow(1 + 1. / 1024, 16) - 1 + 2. / 16384, kSteepest = 2;
    PreparedCase sizes = stored;
    for (Mat& m : sizes.inputs) make_magnitudes(&(m = from_storage(m)), 1);
    for (Mat& m : sizes.weights) make_magnitudes(&m, 1);
    const LayerPtr layer = make_case_layer(type, c, sizes, true);
    ToMagnitudes visitor;
    layer->visit_params(visitor);
    std::vector<Mat> errors = run_layer(*layer, sizes.inputs);
    for (Mat& m : errors) make_magnitudes(&m, kBound * kSteepest);
    return errors;
}

// The same with products of halves: how many dispatches have them.
int check_halves(const char* type, const LayerCase& c, const PreparedCase& p, bool sums) {
    if (p.inputs.empty()) return 0;
    std::vector<Mat> want;
    PreparedCase stored = stored_case(type, c, p, DType::f16, &want);
    Option opt;
    opt.num_threads = 1;
    opt.use_fp16_storage = opt.use_fp16_arithmetic = true;
    opt.use_cooperative_matrix = false;
    const std::unique_ptr<VulkanBackend> backend =
        VulkanBackend::create(get_default_gpu_index(), opt);
    EXPECT_TRUE(backend != nullptr);
    EXPECT_FALSE(want.empty()) << "the reference failed";
    if (!backend || want.empty()) return 0;
    const LayerPtr layer = loaded_layer(type, c, p);
    EXPECT_EQ(0, backend->prepare(*layer, opt));
    HalfSums halves;
    if (sums)
        halves.errors = errors_of_halves(type, c, stored);
    else
        stored.tolerance.arithmetic_epsilon = 1. / 1024, halves.errors.resize(want.size());
    EXPECT_EQ(want.size(), halves.errors.size()) << "the sums of magnitudes failed";
    if (want.size() != halves.errors.size()) return 0;
    // Its tests are test_vulkan_winograd's.
    force_winograd(0);
    run_region(*backend, *layer, stored.inputs, {want}, stored, DType::f16, opt, &halves);
    force_winograd(-1);
    return halves.dispatches;
}

void check_all_halves(const char* type, const std::vector<LayerCase>& cases) {
    const auto found = std::find_if(std::begin(kMultiply), std::end(kMultiply),
                                    [&](const char* name) { return strcmp(type, name) == 0; });
    if (found == std::end(kMultiply) || !get_gpu_info().support_fp16_arithmetic()) return;
    int dispatches = 0;
    for (size_t i = 0; i < cases.size() && !testing::Test::HasFailure(); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        SCOPED_TRACE(p.text + ", products of halves");
        dispatches += check_halves(type, cases[i], p, found < kMultiply + kSumsOfProducts);
    }
    printf("%s: %d dispatches multiply halves\n", type, dispatches);
    EXPECT_LT(0, dispatches);
}

// Layers that ncnn runs on Vulkan: here, too. Split and MemoryData, which are no layers by
// themselves on a device, are in tests/runtime/test_vulkan_faults.cpp.
const char* const kNcnnLayers[] = {"AbsVal",
                                   "BatchNorm",
                                   "BinaryOp",
                                   "Cast",
                                   "CELU",
                                   "Clip",
                                   "Concat",
                                   "Convolution",
                                   "Convolution1D",
                                   "ConvolutionDepthWise",
                                   "Crop",
                                   "Deconvolution",
                                   "DeconvolutionDepthWise",
                                   "DeepCopy",
                                   "Dequantize",
                                   "Dropout",
                                   "Eltwise",
                                   "ELU",
                                   "Erf",
                                   "Flatten",
                                   "GELU",
                                   "Gemm",
                                   "GroupNorm",
                                   "HardSigmoid",
                                   "HardSwish",
                                   "InnerProduct",
                                   "InstanceNorm",
                                   "Interp",
                                   "LayerNorm",
                                   "LRN",
                                   "Mish",
                                   "MultiHeadAttention",
                                   "Noop",
                                   "Normalize",
                                   "Packing",
                                   "Padding",
                                   "Permute",
                                   "PixelShuffle",
                                   "Pooling",
                                   "PReLU",
                                   "PriorBox",
                                   "Quantize",
                                   "Reduction",
                                   "ReLU",
                                   "Reorg",
                                   "Requantize",
                                   "Reshape",
                                   "RMSNorm",
                                   "RotaryEmbed",
                                   "Scale",
                                   "SDPA",
                                   "SELU",
                                   "Shrink",
                                   "ShuffleChannel",
                                   "Sigmoid",
                                   "Slice",
                                   "Softmax",
                                   "Softplus",
                                   "Swish",
                                   "TanH",
                                   "UnaryOp",
                                   "Unfold"};

bool is_ncnn_layer(const std::string& type) {
    return std::find(std::begin(kNcnnLayers), std::end(kNcnnLayers), type) != std::end(kNcnnLayers);
}

}  // namespace

void check_vulkan(const char* type, const std::vector<LayerCase>& cases) {
    if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    int ran = 0;
    for (size_t i = 0; i < cases.size(); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        for (DType storage : {DType::f32, DType::f16, DType::bf16}) {
            SCOPED_TRACE(p.text + ", blobs of " + dtype_name(storage));
            // The convolutions of software devices take long to compile.
            force_lanes((i + (size_t)storage) % 4 == 0);
            ran += check_case(type, cases[i], p, storage);
            force_lanes(false);
            if (testing::Test::HasFailure()) return;
        }
    }
    check_all_halves(type, cases);
    testing::Test::RecordProperty("ran", ran);
    printf("%s: %d of %zu cases run on the device\n", type, ran, cases.size() * 3);
    EXPECT_TRUE(ran > 0 || !is_ncnn_layer(type));
    if (ran == 0) GTEST_SKIP() << "no form for the device";
}

#else

void check_vulkan(const char*, const std::vector<LayerCase>&) {
    GTEST_SKIP() << "built without Vulkan";
}

#endif

}  // namespace quoll
