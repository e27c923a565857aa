// Operators along an axis: running sums, ArgReduce, TopK; ArgMax.
#include "layer/tensor/argmax.h"
#include "layer/tensor/cumsum.h"
#include "layer/tensor/cumulativesum.h"
#include "layer/tensor/tensorsearch.h"
#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

class ScanVulkan : public VulkanLayer {
public:
    // first, second: constants of the shader.
    ScanVulkan(Shader shader, const int& axis, bool first, bool second)
        : shader_(shader), axis_(axis), first_(first), second_(second) {}

    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes&) const override {
        return in.size() == 1 && !is_integer(in[0].dtype);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const int dims = in[0].shape.dims;
        const int outermost = dims == 1 ? 0 : axis_ < 0 ? axis_ + dims : axis_;
        const int along = axis_index(dims, outermost);
        const MemoryAxes from = memory_axes(in[0]);
        const uint32_t length = from.sizes[along];
        Words sizes, steps, made;
        uint32_t lines = 1, next = 1;  // planar outputs without the axis
        for (int i : from.order) {
            if (i == along) continue;
            lines *= from.sizes[i];
            sizes.push_back(from.sizes[i]), steps.push_back(from.steps[i]);
            made.push_back(shader_ == Shader::arg ? next : from.steps[i]);
            next *= from.sizes[i];
        }
        Words push = {lines,       length,      from.steps[along], from.steps[along],
                      in[0].first, out[0].first};
        for (const Words* words : {&sizes, &steps, &made})
            push.insert(push.end(), words->begin(), words->end());
        r.dispatch_linear(shader_, {first_, second_}, {r.read(in[0]), r.write(out[0])}, push,
                          lines);
        return kOk;
    }

private:
    const Shader shader_;
    const int& axis_;  // of the layer
    const bool first_, second_;
};

// Each value is compared with all others of its line, so longer ones would take too long.
const int kLongestLine = 8192;

class TopKVulkan : public VulkanLayer {
public:
    explicit TopKVulkan(const TopK& layer) : layer_(layer) {}

    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        return in.size() == 1 && out.size() == 2 && !is_integer(in[0].dtype) &&
               in[0].size(axis_of(in[0])) <= kLongestLine;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const int along = axis_index(in[0].shape.dims, axis_of(in[0].shape));
        const MemoryAxes from = memory_axes(in[0]), to = memory_axes(out[0]);
        const uint32_t total = (uint32_t)in[0].shape.total();
        Words push = {total,           from.sizes[along], to.sizes[along], from.steps[along],
                      to.steps[along], in[0].first,       out[0].first,    out[1].first};
        for (const uint32_t* five : {from.sizes, from.steps, to.steps})
            for (int i = 0; i < 5; i++)
                if (i != along) push.push_back(five[i]);
        r.dispatch_linear(Shader::topk, {layer_.largest != 0},
                          {r.read(in[0]), r.write(out[0]), r.write(out[1])}, push, total);
        return kOk;
    }

private:
    int axis_of(const Shape& s) const {
        return layer_.axis < 0 ? layer_.axis + s.dims : layer_.axis;
    }
    const TopK& layer_;
};

// ArgMax over all values of an item.
class ArgMaxVulkan : public VulkanLayer {
public:
    ArgMaxVulkan(const ArgMax& layer, Storage storage)
        : layer_(layer),
          longest_(storage == Storage::f16    ? kMostExactF16
                   : storage == Storage::bf16 ? kMostExactBf16
                                              : kLongestLine) {}

    bool supports(const Shapes& in, const Shapes&) const override {
        return in[0].total() / in[0].n <= (size_t)longest_;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const uint32_t total = (uint32_t)in[0].shape.total(), items = (uint32_t)in[0].shape.n;
        const uint32_t length = total / items, most = (uint32_t)layer_.topk;
        const bool values = layer_.out_max_val != 0;
        Words push = {total, length,      most,         1,
                      1,     in[0].first, out[0].first, out[0].first + (values ? most : 0)};
        const uint32_t made = most * (values ? 2 : 1);
        for (uint32_t first : {items, length, made}) push.insert(push.end(), {first, 1, 1, 1});
        r.dispatch_linear(Shader::argmax, {true, values}, {r.read(in[0]), r.write(out[0])}, push,
                          total);
        return kOk;
    }

private:
    // Indexes below these are exact in the type.
    static const int kMostExactF16 = 2048, kMostExactBf16 = 256;
    const ArgMax& layer_;
    const int longest_;
};

}  // namespace

int make_scan_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    if (const CumulativeSum* sum = as<CumulativeSum>(&layer))
        made->reset(new ScanVulkan(Shader::scan, sum->axis, false, false));
    const CumSum* sum = as<CumSum>(&layer);
    if (sum && layer.bottoms.size() == 1)
        made->reset(
            new ScanVulkan(Shader::scan, sum->axis, sum->reverse != 0, sum->exclusive != 0));
    const TopK* top = as<TopK>(&layer);
    if (top && top->sorted) made->reset(new TopKVulkan(*top));
    if (const ArgMax* arg = as<ArgMax>(&layer))
        made->reset(new ArgMaxVulkan(*arg, context.storage));
    if (const ArgReduce* arg = as<ArgReduce>(&layer))
        made->reset(
            new ScanVulkan(Shader::arg, arg->axis, arg->select_last_index != 0, arg->min != 0));
    return kOk;
}

}  // namespace quoll
