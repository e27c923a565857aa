// Comparisons, logic and whole numbers: TensorBinary beyond arithmetic of floats, Where.
#include "layer/elementwise/tensorbinary.h"
#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

void push_sizes(const Value& out, Words* push) {
    const MemoryAxes to = memory_axes(out);
    push->insert(push->end(), to.sizes, to.sizes + 5);
}

// Axes stand on each other from the innermost on.
void push_spread(const Value& in, const Value& out, Words* push) {
    uint32_t steps[5];
    spread_steps(in, out.shape.dims - in.shape.dims, out, steps);
    push->insert(push->end(), steps, steps + 5);
}

class CompareVulkan : public VulkanLayer {
public:
    explicit CompareVulkan(int operation) : operation_(operation) {}

    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        return in.size() == 2 && in[0].dtype == in[1].dtype && is_integer(out[0].dtype) &&
               (is_integer(in[0].dtype) || is_comparison());
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Shader shader = is_integer(in[0].shape.dtype) ? Shader::compare_int : Shader::compare;
        const uint32_t total = (uint32_t)out[0].shape.total();
        Words push = {total, in[0].first, in[1].first, out[0].first};
        push_sizes(out[0], &push);
        for (const Value& value : in) push_spread(value, out[0], &push);
        r.dispatch_linear(shader, {operation_, (int)out[0].shape.dtype},
                          {r.read(in[0]), r.read(in[1]), r.write(out[0])}, push, total);
        return kOk;
    }

private:
    bool is_comparison() const {
        return operation_ >= TensorBinary::EQUAL && operation_ <= TensorBinary::GREATER_EQUAL;
    }
    const int operation_;
};

class WhereVulkan : public VulkanLayer {
public:
    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes&) const override {
        return in.size() == 3 && is_integer(in[0].dtype);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Shader shader = is_integer(out[0].shape.dtype) ? Shader::where_int : Shader::where;
        const uint32_t total = (uint32_t)out[0].shape.total();
        Words push = {total, in[0].first, in[1].first, in[2].first, out[0].first};
        push_sizes(out[0], &push);
        for (const Value& value : in) push_spread(value, out[0], &push);
        r.dispatch_linear(shader, {},
                          {r.read(in[0]), r.read(in[1]), r.read(in[2]), r.write(out[0])}, push,
                          total);
        return kOk;
    }
};

// The operations of integers that the shader has: all but quotients, powers and shifts.
bool has_form(int operation) {
    switch (operation) {
        case TensorBinary::DIV:
        case TensorBinary::MOD:
        case TensorBinary::FMOD:
        case TensorBinary::POW:
        case TensorBinary::SHIFT_LEFT:
        case TensorBinary::SHIFT_RIGHT:
            return false;
    }
    return true;
}

}  // namespace

int make_logic_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const TensorBinary* binary = as<TensorBinary>(&layer);
    if (binary && has_form(binary->op_type)) made->reset(new CompareVulkan(binary->op_type));
    if (as<Where>(&layer)) made->reset(new WhereVulkan);
    return kOk;
}

}  // namespace quoll
