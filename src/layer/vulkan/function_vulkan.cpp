// Layers that map each value by itself with functions that are not activations of other layers.
#include <math.h>

#include "layer/activation/bnll.h"
#include "layer/activation/celu.h"
#include "layer/activation/elu.h"
#include "layer/activation/hardsigmoid.h"
#include "layer/activation/selu.h"
#include "layer/activation/shrink.h"
#include "layer/activation/softplus.h"
#include "layer/activation/swish.h"
#include "layer/activation/tanh.h"
#include "layer/activation/threshold.h"
#include "layer/elementwise/absval.h"
#include "layer/elementwise/dropout.h"
#include "layer/elementwise/erf.h"
#include "layer/elementwise/exp.h"
#include "layer/elementwise/log.h"
#include "layer/elementwise/power.h"
#include "layer/elementwise/tensorunary.h"
#include "layer/elementwise/unaryop.h"
#include "layer/vulkan/valuewise_vulkan.h"

namespace quoll {

namespace {

// As function.comp numbers them; below are the operations of UnaryOp.
enum FunctionType {
    kPower = 32,
    kExp,
    kLog,
    kErf,
    kElu,
    kHardSigmoid,
    kShrink,
    kSoftplus,
    kThreshold,
    kSwish,
};

struct Function {
    int type;
    float a, b, c;
};

// The functions that keep the type of floats.
bool function_of_tensor(const TensorUnary& layer, Function* f) {
    const std::pair<int, int> same[] = {{TensorUnary::ABS, UnaryOp::ABS},
                                        {TensorUnary::NEG, UnaryOp::NEG},
                                        {TensorUnary::SIGN, UnaryOp::SIGN},
                                        {TensorUnary::ROUND, UnaryOp::ROUND}};
    for (const auto& pair : same)
        if (pair.first == layer.op_type) return *f = {pair.second, 0, 0, 0}, true;
    return false;
}

// Except functions that do nothing or are activations, which other forms take.
bool function_of(const Layer& layer, Function* f) {
    if (const UnaryOp* s = as<UnaryOp>(&layer)) return *f = {s->op_type, 0, 0, 0}, true;
    if (as<AbsVal>(&layer)) return *f = {UnaryOp::ABS, 0, 0, 0}, true;
    if (as<TanH>(&layer)) return *f = {UnaryOp::TANH, 0, 0, 0}, true;
    if (as<Erf>(&layer)) return *f = {kErf, 0, 0, 0}, true;
    if (as<Softplus>(&layer) || as<BNLL>(&layer)) return *f = {kSoftplus, 0, 0, 0}, true;
    const Dropout* dropout = as<Dropout>(&layer);
    if (dropout && dropout->scale != 1.f) return *f = {kPower, 1.f, dropout->scale, 0}, true;
    if (const Power* s = as<Power>(&layer))
        return *f = {kPower, s->power, s->scale, s->shift}, true;
    if (const Exp* s = as<Exp>(&layer)) return *f = {kExp, s->base, s->scale, s->shift}, true;
    if (const Log* s = as<Log>(&layer))
        return *f = {kLog, s->base == -1.f ? 1.f : logf(s->base), s->scale, s->shift}, true;
    if (const ELU* s = as<ELU>(&layer)) return *f = {kElu, s->alpha, 1.f, 1.f}, true;
    if (const SELU* s = as<SELU>(&layer)) return *f = {kElu, s->alpha, s->lambda, 1.f}, true;
    if (const CELU* s = as<CELU>(&layer)) return *f = {kElu, s->alpha, 1.f, 1.f / s->alpha}, true;
    if (const HardSigmoid* s = as<HardSigmoid>(&layer))
        return *f = {kHardSigmoid, s->alpha, s->beta, 0}, true;
    const Swish* swish = as<Swish>(&layer);
    if (swish && swish->beta != 1.f) return *f = {kSwish, swish->beta, 0, 0}, true;
    if (const Shrink* s = as<Shrink>(&layer)) return *f = {kShrink, s->lambd, s->bias, 0}, true;
    if (const Threshold* s = as<Threshold>(&layer))
        return *f = {kThreshold, s->threshold, 0, 0}, true;
    if (const TensorUnary* s = as<TensorUnary>(&layer)) return function_of_tensor(*s, f);
    return false;
}

}  // namespace

int make_function_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    Function f;
    if (function_of(layer, &f))
        made->reset(new ValuewiseVulkan(Shader::function, f.type, {f.a, f.b, f.c}));
    return kOk;
}

}  // namespace quoll
