#include <utility>

#include "graph/passes.h"
#include "layer/elementwise/binaryop.h"
#include "layer/norm/batchnorm.h"

namespace quoll {

namespace {

// A branch of a sum: a convolution, or a BatchNorm, which is a 1x1 convolution of each channel.
struct Branch {
    int index;
    Convolution* conv;
    const BatchNorm* norm;
};

bool has_plain_weights(const LayerGraph& graph, int index, const Convolution& conv) {
    FusionTarget w;
    return fusion_target(graph, index, &w) && w.folds && conv.bottoms.size() == 1 &&
           conv.activation_type == kActivationNone && !conv.dynamic_weight && !conv.add_input &&
           conv.int8_scale_term == 0;
}

bool branch_of(const LayerGraph& graph, int blob, int sum, Branch* branch) {
    branch->index = graph.producer(blob);
    if (branch->index < 0 || graph.only_reader(branch->index) != sum) return false;
    branch->conv = graph.as<Convolution>(branch->index);
    branch->norm = as_built<BatchNorm>(graph, branch->index);
    return branch->norm || (branch->conv && has_plain_weights(graph, branch->index, *branch->conv));
}

bool same_steps(const Convolution& a, const Convolution& b) {
    return a.axes == b.axes && a.group == b.group && a.num_output == b.num_output &&
           a.stride_w == b.stride_w && a.stride_h == b.stride_h && a.stride_d == b.stride_d &&
           a.weight_data_size / a.maxk() == b.weight_data_size / b.maxk();
}

// Whether the taps of a kernel of size `k` with `dilation` are among those of one of size `wide`,
// both centred.
bool within(int k, int dilation, int wide, int wide_dilation) {
    return k == 1 || (k <= wide && dilation == wide_dilation);
}

bool same_window(const Convolution& a, const Convolution& b) {
    return a.kernel_w == b.kernel_w && a.kernel_h == b.kernel_h && a.kernel_d == b.kernel_d &&
           a.dilation_w == b.dilation_w && a.dilation_h == b.dilation_h &&
           a.dilation_d == b.dilation_d && a.pad_left == b.pad_left && a.pad_right == b.pad_right &&
           a.pad_top == b.pad_top && a.pad_bottom == b.pad_bottom && a.pad_front == b.pad_front &&
           a.pad_behind == b.pad_behind && a.pad_value == b.pad_value;
}

// Whether the axis has a tap in the middle, at the position of the output, and as many outputs as a
// kernel of size 1 gives.
bool centred(int kernel, int dilation, int before, int after) {
    return kernel % 2 == 1 && before == after && before == kernel / 2 * dilation;
}

bool centred(const Convolution& c) {
    return centred(c.kernel_w, c.dilation_w, c.pad_left, c.pad_right) &&
           (c.axes < 2 || centred(c.kernel_h, c.dilation_h, c.pad_top, c.pad_bottom)) &&
           (c.axes < 3 || centred(c.kernel_d, c.dilation_d, c.pad_front, c.pad_behind));
}

bool centred_within(const Convolution& small, const Convolution& wide) {
    return centred(small) && centred(wide) && small.pad_value == wide.pad_value &&
           within(small.kernel_w, small.dilation_w, wide.kernel_w, wide.dilation_w) &&
           within(small.kernel_h, small.dilation_h, wide.kernel_h, wide.dilation_h) &&
           within(small.kernel_d, small.dilation_d, wide.kernel_d, wide.dilation_d);
}

// Whether `b` computes the same as `a` with other weights, which can be added to those of its taps,
// or of those in the middle.
bool fits(const Convolution& a, const Branch& b) {
    if (b.conv)
        return same_steps(a, *b.conv) && (same_window(a, *b.conv) || centred_within(*b.conv, a));
    const int inputs = a.weight_data_size / a.maxk() / a.num_output * a.group;
    return inputs == a.num_output && b.norm->channels == a.num_output && a.stride_w == 1 &&
           a.stride_h == 1 && a.stride_d == 1 && centred(a);
}

// The index among the taps of `wide` of tap i of `small`, both centred.
int tap_of(const Convolution& wide, const Convolution& small, int i) {
    const int x = i % small.kernel_w, y = i / small.kernel_w % small.kernel_h;
    const int z = i / small.kernel_w / small.kernel_h;
    const int at_x = x + (wide.kernel_w - small.kernel_w) / 2;
    const int at_y = y + (wide.kernel_h - small.kernel_h) / 2;
    return ((z + (wide.kernel_d - small.kernel_d) / 2) * wide.kernel_h + at_y) * wide.kernel_w +
           at_x;
}

int add_weights(Convolution* a, const Branch& b) {
    Mat weight = a->weight_data.clone(), bias(a->num_output);
    if (weight.empty() || bias.empty()) return kOutOfMemory;
    const int maxk = a->maxk(), inputs = a->weight_data_size / a->num_output / maxk;
    for (int o = 0; o < a->num_output; o++) {
        float* row = (float*)weight + (size_t)o * inputs * maxk;
        bias[o] = a->bias_term ? a->bias_data[o] : 0.f;
        if (b.norm) {
            row[o % inputs * maxk + maxk / 2] += b.norm->b_data[o];
            bias[o] += b.norm->a_data[o];
            continue;
        }
        const int taps = b.conv->maxk();
        const float* other = (const float*)b.conv->weight_data + (size_t)o * inputs * taps;
        for (int i = 0; i < inputs * taps; i++)
            row[i / taps * maxk + tap_of(*a, *b.conv, i % taps)] += other[i];
        if (b.conv->bias_term) bias[o] += b.conv->bias_data[o];
    }
    a->weight_data = weight;
    a->bias_data = bias;
    a->bias_term = 1;
    return kOk;
}

}  // namespace

int merge_parallel(LayerGraph& graph, int index, const LayerMaker&) {
    const auto* sum = graph.as<BinaryOp>(index);
    if (!sum || sum->op_type != BinaryOp::ADD || sum->with_scalar || sum->bottoms.size() != 2 ||
        sum->bottoms[0] == sum->bottoms[1])
        return 0;
    Branch a, b;
    if (!branch_of(graph, sum->bottoms[0], index, &a) ||
        !branch_of(graph, sum->bottoms[1], index, &b) ||
        graph.layer(a.index)->bottoms[0] != graph.layer(b.index)->bottoms[0])
        return 0;
    if (!a.conv || (b.conv && b.conv->maxk() > a.conv->maxk())) std::swap(a, b);
    if (!a.conv || !fits(*a.conv, b)) return 0;
    const int status = add_weights(a.conv, b);
    if (status != kOk) return status;
    const std::string what = "parallel " + graph.layer(b.index)->type + " into " + a.conv->type;
    graph.absorb(a.index, index, false, what.c_str());
    graph.remove(b.index);
    return 1;
}

}  // namespace quoll
