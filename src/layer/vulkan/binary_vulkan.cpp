// BinaryOp, TensorBinary and Eltwise.
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/eltwise.h"
#include "layer/elementwise/tensorbinary.h"
#include "layer/vulkan/axes.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

// Whether the input has the output's rows of vec4s: the same shape and layout.
bool same_rows(const Value& in, const Value& out) {
    return in.shape == out.shape && in.layout == out.layout;
}

// Whether the input has one value for each channel of an output of one item that is channels-last.
bool is_row_for_all(const Value& in, const Value& out) {
    if (out.layout != Layout::kChannelsLast || out.shape.n != 1 || in.shape.n != 1) return false;
    const bool channels = in.shape.dims == 1
                              ? in.shape.w == out.shape.c
                              : in.layout == Layout::kChannelsLast && plane(in.shape) == 1 &&
                                    in.shape.c == out.shape.c;
    return channels && in.shape.total() > 1;
}

// Whether the operation needs the shader variants with elementary functions.
bool needs_functions(int operation) {
    switch (operation) {
        case BinaryOp::POW:
        case BinaryOp::RPOW:
        case BinaryOp::ATAN2:
        case BinaryOp::RATAN2:
        case BinaryOp::FMOD:
        case BinaryOp::RFMOD:
        case BinaryOp::LOGADDEXP:
        case BinaryOp::REMAINDER:
        case BinaryOp::RREMAINDER:
            return true;
    }
    return false;
}

// factors: those of both operands, or 1 and the number that is the right operand.
void record_rows(Recorder& r, int operation, bool scalar, const Value& a, const Value& b,
                 const Value& out, float factor_a, float factor_b) {
    const Rows to = rows_of(out), left = rows_of(a), right = rows_of(b);
    const uint32_t count = to.count * to.vectors();
    const uint32_t left_pitch = same_rows(a, out) ? left.pitch / 4 : 0;
    const uint32_t right_pitch = same_rows(b, out) ? right.pitch / 4 : 0;
    const Shader shader = needs_functions(operation) ? Shader::binary_function : Shader::binary;
    r.dispatch_linear(shader, {operation, scalar}, {r.read(a), r.read(b), r.write(out)},
                      {count, to.vectors(), to.length, a.first / 4, left_pitch, b.first / 4,
                       right_pitch, out.first / 4, to.pitch / 4, factor_a, factor_b},
                      count);
}

// first: the axis of the output on which axis 0 of each input is aligned.
void record_strided(Recorder& r, int operation, const Values& in, const int first[2],
                    const Value& out) {
    const MemoryAxes to = memory_axes(out);
    Words push = {to.count(), to.valid, in[0].first, in[1].first, out.first};
    for (uint32_t size : to.stored) push.push_back(size);
    for (int i = 0; i < 2; i++) {
        uint32_t steps[5];
        spread_steps(in[i], first[i], out, steps);
        push_steps(steps, to, &push);
    }
    push_steps(to.steps, to, &push);
    const Shader shader =
        needs_functions(operation) ? Shader::binary_function_strided : Shader::binary_strided;
    r.dispatch_linear(shader, {operation}, {r.read(in[0]), r.read(in[1]), r.write(out)}, push,
                      to.count());
}

class BinaryVulkan : public VulkanLayer {
public:
    explicit BinaryVulkan(const BinaryOp& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes&) const override {
        if (layer_.with_scalar) return in.size() == 1;
        const LogMute mute;
        int first[2];
        Shape made;
        return in.size() == 2 && layer_.align(in[0], in[1], first, &made) == kOk;
    }

    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        for (size_t i = 0; i < in->size(); i++)
            if ((*in)[i] == Layout::kChannelsLast && in_shapes[i] == out_shapes[0])
                return all_channels_last(in_shapes, out_shapes, in, out);
        VulkanLayer::choose_layouts(in_shapes, out_shapes, in, out);
    }

    int record(Recorder& r, const Values& in, const Values& out) const override {
        if (layer_.with_scalar) {
            record_rows(r, layer_.op_type, true, in[0], in[0], out[0], 1.f, layer_.b);
            return kOk;
        }
        int first[2];
        Shape made;
        QUOLL_RETURN_IF_ERROR(layer_.align(in[0].shape, in[1].shape, first, &made));
        bool rows = true;
        for (int i = 0; i < 2; i++)
            rows &= same_rows(in[i], out[0]) ||
                    (is_row_for_all(in[i], out[0]) && (in[i].shape.dims != 1 || first[i] == 0));
        if (rows)
            record_rows(r, layer_.op_type, false, in[0], in[1], out[0], 1.f, 1.f);
        else
            record_strided(r, layer_.op_type, in, first, out[0]);
        return kOk;
    }

private:
    const BinaryOp& layer_;
};

// The operation of BinaryOp that is the same as one of TensorBinary for floats, or -1.
int operation_of(const TensorBinary& layer) {
    const std::pair<int, int> same[] = {
        {TensorBinary::ADD, BinaryOp::ADD}, {TensorBinary::SUB, BinaryOp::SUB},
        {TensorBinary::MUL, BinaryOp::MUL}, {TensorBinary::DIV, BinaryOp::DIV},
        {TensorBinary::POW, BinaryOp::POW}, {TensorBinary::FMOD, BinaryOp::FMOD},
        {TensorBinary::MAX, BinaryOp::MAX}, {TensorBinary::MIN, BinaryOp::MIN}};
    for (const auto& pair : same)
        if (pair.first == layer.op_type) return pair.second;
    return -1;
}

// Axes are aligned from the innermost on.
class TensorBinaryVulkan : public VulkanLayer {
public:
    // integers: the form for them; null: none.
    TensorBinaryVulkan(int operation, VulkanLayerPtr integers)
        : operation_(operation), integers_(std::move(integers)) {}

    bool takes_integers() const override { return integers_ != nullptr; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        return is_integer(out[0].dtype) ? integers_->supports(in, out) : in.size() == 2;
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        for (size_t i = 0; i < in->size(); i++)
            if ((*in)[i] == Layout::kChannelsLast && in_shapes[i] == out_shapes[0])
                return all_channels_last(in_shapes, out_shapes, in, out);
        VulkanLayer::choose_layouts(in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        if (is_integer(out[0].shape.dtype)) return integers_->record(r, in, out);
        if (same_rows(in[0], out[0]) && same_rows(in[1], out[0])) {
            record_rows(r, operation_, false, in[0], in[1], out[0], 1.f, 1.f);
            return kOk;
        }
        const int dims = out[0].shape.dims;
        const int first[2] = {dims - in[0].shape.dims, dims - in[1].shape.dims};
        record_strided(r, operation_, in, first, out[0]);
        return kOk;
    }

private:
    const int operation_;
    const VulkanLayerPtr integers_;
};

class EltwiseVulkan : public VulkanLayer {
public:
    EltwiseVulkan(const Eltwise& layer, Storage storage) : layer_(layer), storage_(storage) {}

    bool supports(const Shapes& in, const Shapes& out) const override {
        // A constant has one item, and would be read beyond its end if the others are a batch.
        for (const Shape& shape : in)
            if (shape.n != out[0].n) return false;
        // Sums of more inputs are rounded after each blob, for which 16 bits are too coarse.
        return in.size() == 2 || (in.size() > 2 && storage_ == Storage::f32);
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const int operations[] = {BinaryOp::MUL, BinaryOp::ADD, BinaryOp::MAX};
        const int operation = operations[layer_.op_type];
        record_rows(r, operation, false, in[0], in[1], out[0], factor(0), factor(1));
        for (size_t i = 2; i < in.size(); i++)
            record_rows(r, operation, false, out[0], in[i], out[0], 1.f, factor(i));
        return kOk;
    }

private:
    float factor(size_t i) const {
        const bool weighted = layer_.op_type == Eltwise::SUM && !layer_.coeffs.empty();
        return weighted ? layer_.coeffs[i] : 1.f;
    }
    const Eltwise& layer_;
    const Storage storage_;
};

}  // namespace

int make_binary_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const BinaryOp* binary = as<BinaryOp>(&layer);
    if (binary) made->reset(new BinaryVulkan(*binary));
    const TensorBinary* tensor = as<TensorBinary>(&layer);
    if (tensor && operation_of(*tensor) >= 0) {
        VulkanLayerPtr integers;
        QUOLL_RETURN_IF_ERROR(make_logic_vulkan(layer, context, &integers));
        made->reset(new TensorBinaryVulkan(operation_of(*tensor), std::move(integers)));
    }
    const Eltwise* eltwise = as<Eltwise>(&layer);
    if (eltwise) made->reset(new EltwiseVulkan(*eltwise, context.storage));
    return kOk;
}

}  // namespace quoll
