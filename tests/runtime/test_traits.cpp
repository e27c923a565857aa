// The traits of all operators (layer/common/traits.h).
#include "layer/common/traits.h"

#include <gtest/gtest.h>
#include <math.h>

#include <memory>
#include <set>

#include "layer/activation/relu.h"
#include "layer/common/activation.h"
#include "layer/nn/convolution.h"
#include "layer/nn/deconvolution.h"
#include "layer/nn/innerproduct.h"
#include "runtime/log_mute.h"

namespace quoll {
namespace {

typedef std::unique_ptr<Layer> LayerPtr;

// Both forms of every operator, with default params.
std::vector<LayerPtr> all_layers() {
    std::vector<LayerPtr> all;
    for (const std::string& type : layer_types()) {
        all.emplace_back(create_layer_reference(type.c_str()));
        all.emplace_back(create_layer(type.c_str()));
    }
    LogMute quiet;
    for (const LayerPtr& layer : all) layer->load_param(ParamDict());
    return all;
}

TEST(Traits, class_of_a_layer) {
    for (const char* type : {"Convolution", "ConvolutionDepthWise", "Convolution3D"}) {
        const LayerPtr fast(create_layer(type)), reference(create_layer_reference(type));
        EXPECT_TRUE(as<Convolution>(fast.get())) << type;
        EXPECT_EQ(as<Convolution>(reference.get()), reference.get()) << type;
        EXPECT_FALSE(as<InnerProduct>(fast.get())) << type;
        EXPECT_FALSE(as<Deconvolution>(reference.get())) << type;
    }
    EXPECT_FALSE(as<ReLU>((Layer*)nullptr));
}

TEST(Traits, custom_layers_are_none_of_ours) {
    Layer plain;
    const LayerPtr derived(create_layer("ReLU"));
    derived->typeindex = -1;  // as a class of the application has it
    EXPECT_FALSE(as<ReLU>(&plain));
    EXPECT_FALSE(as<ReLU>(derived.get()));
    EXPECT_EQ(plain.traits(), 0u);
    EXPECT_EQ(plain.as_activation().type, kActivationNone);
    EXPECT_EQ(plain.macs({Shape(4)}, {Shape(4)}), 0);
    EXPECT_FALSE(keeps_shape(plain));
}

// What passes conclude from the flags of a layer that works in place.
TEST(Traits, layers_in_place_keep_the_shape) {
    const LogMute quiet;
    const Shape in(5, 4, 8);
    int seen = 0;
    for (const LayerPtr& layer : all_layers()) {
        std::vector<Shape> out;
        if (!keeps_shape(*layer) || layer->infer_shapes({in}, out) != kOk) continue;
        ASSERT_EQ(out.size(), 1u) << layer->type;
        EXPECT_EQ(out[0], in) << layer->type;
        seen++;
    }
    EXPECT_GT(seen, 40);
}

// Who moves or chooses values takes s8 as it takes f32, and gives it.
TEST(Traits, moved_values_may_be_s8) {
    const LogMute quiet;
    std::set<std::string> seen;
    for (const LayerPtr& layer : all_layers()) {
        if (!has_trait(*layer, kMovesValues) && !has_trait(*layer, kChoosesValues)) continue;
        seen.insert(layer->type);
        Shape in(4, 4, 8);
        std::vector<Shape> floats, bytes;
        const int status = layer->infer_shapes({in}, floats);
        in.dtype = DType::s8;
        EXPECT_EQ(layer->infer_shapes({in}, bytes), status) << layer->type;
        if (status != kOk) continue;
        ASSERT_EQ(floats.size(), bytes.size()) << layer->type;
        for (size_t i = 0; i < bytes.size(); i++) {
            EXPECT_EQ(bytes[i].dtype, DType::s8) << layer->type;
            EXPECT_EQ(bytes[i].total(), floats[i].total()) << layer->type;
        }
    }
    EXPECT_GE(seen.size(), 13u);
}

// An operator that says which activation it is computes that: each row of the table by an operator.
TEST(Traits, activations_are_what_their_operators_compute) {
    std::set<int> types;
    for (const LayerPtr& layer : all_layers()) {
        const Activation f = layer->as_activation();
        if (f.type == kActivationNone) continue;
        types.insert(f.type);
        Mat x(201);
        for (int i = 0; i < x.w; i++) x[i] = (float)(i - 100) * .13f;
        Mat y = x.clone();
        ASSERT_EQ(layer->create_pipeline(Option()), kOk);
        ASSERT_EQ(layer->forward_inplace(y, Option()), kOk);
        for (int i = 0; i < x.w; i++)
            EXPECT_NEAR(y[i], activate(x[i], f), 1e-6f + 1e-6f * fabsf(x[i]))
                << layer->type << " of " << x[i];
    }
    ParamDict sloped;
    sloped.set(0, .1f);
    ReLU leaky;
    ASSERT_EQ(leaky.load_param(sloped), kOk);
    EXPECT_EQ(leaky.as_activation().type, kActivationLeakyReLU);
    EXPECT_EQ(leaky.as_activation().a, .1f);
    EXPECT_EQ(leaky.traits(), 0u);  // it computes
    types.insert(kActivationLeakyReLU);
    std::set<int> table;
#define QUOLL_ACTIVATION(number, ...) table.insert(number);
    QUOLL_ACTIVATIONS(QUOLL_ACTIVATION)
#undef QUOLL_ACTIVATION
    EXPECT_EQ(types, table);
}

// Written by hand: the limit of each, and its value for NaN.
TEST(Traits, activations_at_infinity) {
    const struct {
        int type;
        float a, b, below, above;
    } cases[] = {
        {kActivationReLU, 0, 0, 0, INFINITY},  {kActivationLeakyReLU, .5f, 0, -INFINITY, INFINITY},
        {kActivationClip, -1, 6, -1, 6},       {kActivationSigmoid, 0, 0, 0, 1},
        {kActivationMish, 0, 0, 0, INFINITY},  {kActivationHardSwish, 1 / 6.f, .5f, 0, INFINITY},
        {kActivationSwish, 1, 0, 0, INFINITY}, {kActivationGelu, 0, 0, 0, INFINITY},
        {kActivationGelu, 1, 0, 0, INFINITY}};
    for (const auto& c : cases) {
        const Activation f(c.type, c.a, c.b);
        EXPECT_EQ(activate(-INFINITY, f), c.below) << c.type;
        EXPECT_EQ(activate(INFINITY, f), c.above) << c.type;
        EXPECT_TRUE(isnan(activate(NAN, f))) << c.type;
    }
}

}  // namespace
}  // namespace quoll
