#include <vector>

#include "graph/passes.h"
#include "layer/control/memorydata.h"
#include "layer/elementwise/bias.h"
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/dropout.h"
#include "layer/elementwise/power.h"
#include "layer/elementwise/scale.h"
#include "layer/nn/innerproduct.h"
#include "layer/norm/batchnorm.h"
#include "layer/tensor/concat.h"
#include "layer/tensor/reshape.h"
#include "layer/tensor/tensorshape.h"
#include "runtime/turned_weight.h"

namespace quoll {

namespace {

// y = scale x + offset, with a scale and an offset for each output, or one of each for all (size
// 1).
struct Affine {
    std::vector<float> scale, offset;
    float scale_of(int q) const { return scale[scale.size() == 1 ? 0 : q]; }
    float offset_of(int q) const { return offset[offset.size() == 1 ? 0 : q]; }
    bool uniform() const { return scale.size() == 1 && offset.size() == 1; }
};

std::vector<float> values_of(const Mat& m) {
    const float* p = m;
    return std::vector<float>(p, p + m.w);
}

// `x op b`, for every b, as an affine function. False if it is not one.
bool affine_of_op(int op_type, const std::vector<float>& b, Affine* f) {
    f->scale.assign(1, 1.f);
    f->offset.assign(1, 0.f);
    switch (op_type) {
        case BinaryOp::ADD:
            f->offset = b;
            return true;
        case BinaryOp::SUB:
            f->offset = b;
            for (float& v : f->offset) v = -v;
            return true;
        case BinaryOp::RSUB:
            f->scale[0] = -1.f;
            f->offset = b;
            return true;
        case BinaryOp::MUL:
            f->scale = b;
            return true;
        case BinaryOp::DIV:
            f->scale = b;
            for (float& v : f->scale) {
                if (v == 0.f) return false;
                v = 1.f / v;
            }
            return true;
    }
    return false;
}

// The op type with exchanged operands, -1 if there is none among those above.
int exchanged(int op_type) {
    switch (op_type) {
        case BinaryOp::ADD:
        case BinaryOp::MUL:
            return op_type;
        case BinaryOp::SUB:
            return BinaryOp::RSUB;
        case BinaryOp::RSUB:
            return BinaryOp::SUB;
        default:
            return -1;
    }
}

// A blob with `channels` on the outermost of 1 + axes axes; axes -1: their number is unknown.
struct Channels {
    int count, axes;
};

// A constant blob with one value per channel, whatever the other sizes: either [channels], which
// broadcasts along the outermost axis if that has this size, or as many axes with 1 on the others.
bool channel_constant(const LayerGraph& graph, int blob, Channels channels,
                      std::vector<float>* values) {
    const auto* constant = graph.as<MemoryData>(graph.producer(blob));
    if (!constant || !constant->bottoms.empty() || constant->type != 0 ||  // bits of integers
        constant->data.dtype != DType::f32 || constant->data.elempack != 1 || graph.kept(blob))
        return false;
    const Mat& m = constant->data;
    const int outermost = m.dims == 1 ? m.w : m.dims == 2 ? m.h : m.c;
    const bool fits = outermost == channels.count && (m.dims == 1 || m.dims == 1 + channels.axes) &&
                      (int64_t)m.w * m.h * m.d * m.c == outermost;
    if (!fits) return false;
    values->clear();
    for (int i = 0; i < channels.count; i++)
        values->push_back(m.dims <= 2 ? ((const float*)m)[i] : *(const float*)m.channel(i));
    return true;
}

bool affine_of_binary(const LayerGraph& graph, const BinaryOp& op, int from, Channels channels,
                      Affine* f) {
    if (op.with_scalar) return affine_of_op(op.op_type, {op.b}, f);
    if (op.bottoms.size() != 2 || op.bottoms[0] == op.bottoms[1]) return false;
    const bool second = op.bottoms[0] == from;  // the constant is operand 1
    std::vector<float> values;
    if (!channel_constant(graph, op.bottoms[second ? 1 : 0], channels, &values)) return false;
    return affine_of_op(second ? op.op_type : exchanged(op.op_type), values, f);
}

// The affine function that layer `index` applies to `from`, a blob with `channels` on its outermost
// axis.
bool affine_of_layer(const LayerGraph& graph, int index, int from, Channels channels, Affine* f) {
    if (const auto* s = as_built<BatchNorm>(graph, index)) {
        if (s->channels != channels.count) return false;
        f->scale = values_of(s->b_data), f->offset = values_of(s->a_data);
        return true;
    }
    if (const auto* s = as_built<Scale>(graph, index)) {
        if (s->scale_is_input() || s->scale_data_size != channels.count) return false;
        f->scale = values_of(s->scale_data);
        f->offset.assign(1, 0.f);
        if (s->bias_term) f->offset = values_of(s->bias_data);
        return true;
    }
    if (const auto* s = as_built<Bias>(graph, index)) {
        // On blobs of 1 and 2 axes it adds its first value to all.
        const bool by_channels = channels.axes == 3 || gives_channels(graph, graph.producer(from));
        if (s->bias_data_size != channels.count || (channels.count > 1 && !by_channels))
            return false;
        f->scale.assign(1, 1.f);
        f->offset = values_of(s->bias_data);
        return true;
    }
    if (const auto* s = as_built<Dropout>(graph, index)) {
        f->scale.assign(1, s->scale), f->offset.assign(1, 0.f);
        return true;
    }
    if (const auto* s = as_built<Power>(graph, index)) {
        f->scale.assign(1, s->scale), f->offset.assign(1, s->shift);
        return s->power == 1.f;
    }
    if (const auto* s = as_built<BinaryOp>(graph, index))
        return affine_of_binary(graph, *s, from, channels, f);
    return false;
}

// What `index`, which has been folded, reads beside `from`.
void stop_following_constants(LayerGraph& graph, int index, int from) {
    for (int blob : graph.layer(index)->bottoms)
        if (blob != from) graph.stop_following(blob);
}

// The weights may be in the user's memory, or be shared with another layer: then they are copied.
int apply_to_weights(const FusionTarget& w, const Affine& f) {
    if (w.axes == 0 && WeightByInputs::is(*w.weight))
        *w.weight = WeightByInputs(*w.weight).turned();
    const bool alone = w.weight->refcount && *w.weight->refcount == 1;
    const Mat from = *w.weight;
    Mat weight = from, bias(w.num_output);
    if (!alone) weight = Mat(from.w);
    if (weight.empty() || bias.empty()) return kOutOfMemory;
    const int per_output = weight.w / w.num_output;
    for (int q = 0; q < w.num_output; q++) {
        const float old = *w.bias_term ? (*w.bias)[q] : 0.f, scale = f.scale_of(q);
        bias[q] = old * scale + f.offset_of(q);
        const float* in = (const float*)from + (size_t)q * per_output;
        float* out = (float*)weight + (size_t)q * per_output;
        for (int i = 0; i < per_output; i++) out[i] = in[i] * scale;
    }
    *w.weight = weight;
    *w.bias = bias;
    *w.bias_term = 1;
    return kOk;
}

int apply_to_batchnorm(BatchNorm& s, const Affine& f) {
    Mat slope = s.slope_data.clone(), bias = s.bias_data.clone();
    Mat a = s.a_data.clone(), b = s.b_data.clone();
    if (slope.empty() || bias.empty() || a.empty() || b.empty()) return kOutOfMemory;
    for (int q = 0; q < s.channels; q++) {
        slope[q] *= f.scale_of(q);
        bias[q] = bias[q] * f.scale_of(q) + f.offset_of(q);
        b[q] *= f.scale_of(q);
        a[q] = a[q] * f.scale_of(q) + f.offset_of(q);
    }
    s.slope_data = slope, s.bias_data = bias, s.a_data = a, s.b_data = b;
    return kOk;
}

// The part of `count` outputs from `first` on.
Affine part_of(const Affine& f, int first, int count) {
    const auto part = [&](const std::vector<float>& v) {
        return v.size() == 1 ? v : std::vector<float>(v.begin() + first, v.begin() + first + count);
    };
    return {part(f.scale), part(f.offset)};
}

// Whether the layer is a Reshape to rows of `count` values.
bool keeps_rows(const LayerGraph& graph, int index, int count) {
    const auto* s = graph.as<Reshape>(index);
    const int none = -233;
    return s && s->bottoms.size() == 1 && s->w == count && s->h != none && s->d == none &&
           s->c == none && !s->permute && s->shape_expr.empty() &&
           s->input_batch_axis == Reshape::kNoBatchAxis &&
           s->output_batch_axis == Reshape::kNoBatchAxis;
}

}  // namespace

int fold_affine(LayerGraph& graph, int index, const LayerMaker&) {
    const int next = graph.only_reader(index);
    if (next < 0 || graph.layer(next)->tops.size() != 1) return 0;
    const int from = graph.layer(index)->tops[0];
    const std::string what = graph.layer(next)->type + " into " + graph.layer(index)->type;
    Affine f;
    FusionTarget w;
    int status;
    if (fusion_target(graph, index, &w)) {
        if (!w.folds || !affine_of_layer(graph, next, from, {w.num_output, w.axes}, &f)) return 0;
        if (!w.per_output && !f.uniform()) return 0;
        status = apply_to_weights(w, f);
    } else if (auto* norm = graph.as<BatchNorm>(index)) {
        if (!affine_of_layer(graph, next, from, {norm->channels, -1}, &f)) return 0;
        status = apply_to_batchnorm(*norm, f);
    } else {
        return 0;
    }
    if (status != kOk) return status;
    stop_following_constants(graph, next, from);
    graph.absorb(index, next, false, what.c_str());
    return 1;
}

int fold_row_norm(LayerGraph& graph, int index, const LayerMaker&) {
    FusionTarget w;
    if (!graph.is<InnerProduct>(index) || !fusion_target(graph, index, &w) || !w.folds) return 0;
    // From the product's one or two axes, or those and the items, to rows; behind BatchAxis there
    // is one axis, of the outputs.
    std::vector<int> changed;
    int last = index, next = graph.only_reader(index);
    bool is_batch = false, joined = false;
    for (; !is_batch; last = next, next = graph.only_reader(next)) {
        changed.push_back(graph.layer(last)->tops[0]);
        if (const auto* axis = graph.as<BatchAxis>(next)) {
            if (joined) return 0;
            joined = axis->inverse;
            is_batch = !axis->inverse;
        } else if (keeps_rows(graph, next, w.num_output)) {
            joined = false;
        } else {
            return 0;
        }
    }
    const auto* norm = graph.as<BatchNorm>(next);
    if (!norm || norm->channels != w.num_output) return 0;
    const int status = apply_to_weights(w, {values_of(norm->b_data), values_of(norm->a_data)});
    if (status != kOk) return status;
    for (int blob : changed) graph.change(blob);  // none is kept: each has one reader
    graph.absorb(last, next, false, "BatchNorm of rows into InnerProduct");
    return 1;
}

bool joined_targets(const LayerGraph& graph, int index, std::vector<FusionTarget>* targets) {
    const auto* concat = graph.as<Concat>(index);
    if (!concat || concat->bottoms.size() < 2) return false;
    for (int blob : concat->bottoms) {
        const int from = graph.producer(blob);
        FusionTarget w;
        if (from < 0 || graph.only_reader(from) != index || !fusion_target(graph, from, &w) ||
            !w.per_output || w.axes == 0 || (!targets->empty() && (*targets)[0].axes != w.axes))
            return false;
        targets->push_back(w);
    }
    return concat->axis == 0 || concat->axis == -1 - (*targets)[0].axes;
}

int fold_joined_affine(LayerGraph& graph, int index, const LayerMaker&) {
    const int next = graph.is<Concat>(index) ? graph.only_reader(index) : -1;
    std::vector<FusionTarget> targets;
    if (next < 0 || graph.layer(next)->tops.size() != 1 || !joined_targets(graph, index, &targets))
        return 0;
    int channels = 0;
    for (const FusionTarget& w : targets) {
        if (!w.folds) return 0;
        channels += w.num_output;
    }
    Affine f;
    if (!affine_of_layer(graph, next, graph.layer(index)->tops[0], {channels, targets[0].axes}, &f))
        return 0;
    int first = 0;
    for (const FusionTarget& w : targets) {
        QUOLL_RETURN_IF_ERROR(apply_to_weights(w, part_of(f, first, w.num_output)));
        first += w.num_output;
    }
    stop_following_constants(graph, next, graph.layer(index)->tops[0]);
    const std::string what = graph.layer(next)->type + " into what a Concat joins";
    for (int blob : graph.layer(index)->bottoms) graph.change(blob);  // none is kept: one reader
    graph.absorb(index, next, false, what.c_str());
    return 1;
}

}  // namespace quoll
