// Layers that normalise: LayerNorm, RMSNorm, GroupNorm, InstanceNorm, MVN, Normalize.
#include "layer/common/channels.h"
#include "layer/norm/groupnorm.h"
#include "layer/norm/instancenorm.h"
#include "layer/norm/layernorm.h"
#include "layer/norm/mvn.h"
#include "layer/norm/normalize.h"
#include "layer/norm/rmsnorm.h"
#include "layer/vulkan/lines.h"

namespace quoll {

namespace {

// Values that an invocation of normalize.comp keeps at most.
const uint32_t kMostKept = 32;

struct LineNorm {
    // As numbered in normalize.comp: (x - mean) / deviation; x / root of the mean square; (x -
    // mean) / (deviation + eps); x - mean; x / length with eps as in Normalize's eps_mode.
    enum Type { kLayer, kRms, kMvn, kMean, kLength };
    int type = kLayer;
    float eps = 0.f;
    Mat factors, terms;
    enum Factor { kOfChannel, kOfRun, kOfAll } factor = kOfChannel;
    // What is normalised together.
    enum Together { kRun, kGroup, kChannel, kPixel, kBlob } together = kChannel;
    int run = 0;    // kRun: affine_size
    int group = 1;  // kGroup
};

class NormVulkan : public VulkanLayer {
public:
    explicit NormVulkan(const LineNorm& n) : n_(n) {
        has_factors_ = !n.factors.empty(), has_terms_ = !n.terms.empty();
        n_.factors = n_.terms = Mat();
    }
    int load(const LineNorm& n, VulkanContext& context) {
        // A binding without values still needs a buffer.
        const std::vector<float> none(1, 0.f);
        QUOLL_RETURN_IF_ERROR(context.weights.add(has_factors_ ? values_of(n.factors) : none,
                                                  Storage::f32, &factors_));
        if (!has_terms_) return kOk;
        return context.weights.add(values_of(n.terms), Storage::f32, &terms_);
    }
    bool supports(const Shapes& in, const Shapes& out) const override {
        return in.size() == 1 && out.size() == 1;
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        // Nothing is stored behind the last channel.
        if (in_shapes[0].dims >= 3 && in_shapes[0].c % 4 == 0)
            follow_layout(0, in_shapes, out_shapes, in, out);
        else
            VulkanLayer::choose_layouts(in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Lines lines = lines_of(in[0], out[0]);
        Binding table;
        QUOLL_RETURN_IF_ERROR(lines.table(r, &table));
        const uint32_t kept = (lines.length() + 63) / 64;
        const bool keeps = !lines.serial() && kept <= kMostKept;
        const bool plain = lines.within.size() == 1 && lines.across.size() <= 1;
        Words push = {lines.count(), lines.length(), in[0].first, out[0].first, n_.eps};
        for (const std::vector<LineAxis>* axes : {&lines.within, &lines.across}) {
            const LineAxis axis = plain && !axes->empty() ? axes->front() : LineAxis{1, 0, 0, 0};
            push.insert(push.end(), {axis.from, axis.to, axis.factor});
        }
        lines.dispatch(
            r, Shader::normalize, {n_.type, has_factors_, has_terms_, keeps ? kept : 0, plain},
            {r.read(in[0]), r.write(out[0]), table, factors_, has_terms_ ? terms_ : factors_},
            push);
        return kOk;
    }

    bool row_norm(const Shape& in, RowNorm* norm) const override {
        *norm = {factors_, has_factors_, n_.eps};
        return n_.type == LineNorm::kRms && n_.together == LineNorm::kRun && !has_terms_ &&
               in.total() == (size_t)in.w && normalized_run(in, n_.run) == (size_t)in.w;
    }

private:
    // Is axis 0 to 3 (w, h, d, c) one of those that are normalised together?
    bool is_within(const Shape& s, int axis) const {
        const bool channel = axis == outermost(s);
        switch (n_.together) {
            case LineNorm::kRun: {
                const size_t run = normalized_run(s, n_.run);
                return axis == 0 || (axis == 1 && run > (size_t)s.w) ||
                       (axis == 2 && run > (size_t)s.w * s.h) ||
                       (axis == 3 && run > (size_t)s.w * s.h * s.d);
            }
            case LineNorm::kGroup:
                return !channel;  // and some channels
            case LineNorm::kChannel:
                return axis != 3;
            case LineNorm::kPixel:
                return axis == 3;
            case LineNorm::kBlob:
                return true;
        }
        return false;
    }
    // The index in w, h, d, c.
    static int outermost(const Shape& s) { return s.dims <= 2 ? s.dims - 1 : 3; }

    // Of the axes w, h, d, c in the table of factors.
    void factor_steps(const Shape& s, uint32_t steps[5]) const {
        for (int i = 0; i < 5; i++) steps[i] = 0;
        if (n_.factor == LineNorm::kOfAll) return;
        if (n_.factor == LineNorm::kOfChannel) {
            steps[n_.together == LineNorm::kGroup ? outermost(s) : 3] = 1;
            return;
        }
        steps[0] = 1;
        if (is_within(s, 1)) steps[1] = s.w;
        if (is_within(s, 2)) steps[2] = s.w * s.h;
        if (is_within(s, 3)) steps[3] = s.w * s.h * s.d;
    }

    Lines lines_of(const Value& in, const Value& out) const {
        const Shape& s = in.shape;
        const MemoryAxes from = memory_axes(in), to = memory_axes(out);
        uint32_t factors[5];
        factor_steps(s, factors);
        Lines lines;
        for (int i : from.order) {
            LineAxis axis = {from.sizes[i], from.steps[i], to.steps[i], factors[i]};
            const bool within = i < 4 && is_within(s, i);
            if (n_.together == LineNorm::kGroup && i == outermost(s)) {
                LineAxis member = axis;
                member.size /= (uint32_t)n_.group;
                lines.within.push_back(member);
                axis = {(uint32_t)n_.group, axis.from * member.size, axis.to * member.size,
                        axis.factor * member.size};
            }
            if (axis.size > 1) (within ? lines.within : lines.across).push_back(axis);
        }
        return lines;
    }

    LineNorm n_;
    bool has_factors_, has_terms_;
    Binding factors_, terms_;
};

bool normalize_of(const Normalize& s, LineNorm* n) {
    if (!s.across_spatial && !s.across_channel) return false;
    n->type = LineNorm::kLength + s.eps_mode, n->eps = s.eps;
    n->factors = s.scale_data;
    n->factor = s.channel_shared ? LineNorm::kOfAll : LineNorm::kOfChannel;
    n->together = !s.across_channel  ? LineNorm::kChannel
                  : s.across_spatial ? LineNorm::kBlob
                                     : LineNorm::kPixel;
    return true;
}

bool norm_of(const Layer& layer, LineNorm* n) {
    if (const LayerNorm* s = as<LayerNorm>(&layer)) {
        n->eps = s->eps, n->run = s->affine_size;
        n->together = LineNorm::kRun, n->factor = LineNorm::kOfRun;
        if (s->affine) n->factors = s->gamma_data, n->terms = s->beta_data;
    } else if (const RMSNorm* s = as<RMSNorm>(&layer)) {
        n->type = LineNorm::kRms, n->eps = s->eps, n->run = s->affine_size;
        n->together = LineNorm::kRun, n->factor = LineNorm::kOfRun;
        if (s->affine) n->factors = s->gamma_data;
    } else if (const GroupNorm* s = as<GroupNorm>(&layer)) {
        n->eps = s->eps, n->group = s->group, n->together = LineNorm::kGroup;
        if (s->affine) n->factors = s->gamma_data, n->terms = s->beta_data;
    } else if (const InstanceNorm* s = as<InstanceNorm>(&layer)) {
        n->eps = s->eps;
        if (s->affine) n->factors = s->gamma_data, n->terms = s->beta_data;
    } else if (const MVN* s = as<MVN>(&layer)) {
        n->type = s->normalize_variance ? LineNorm::kMvn : LineNorm::kMean, n->eps = s->eps;
        n->together = s->across_channels ? LineNorm::kBlob : LineNorm::kChannel;
    } else if (const Normalize* s = as<Normalize>(&layer)) {
        return normalize_of(*s, n);
    } else {
        return false;
    }
    return true;
}

}  // namespace

int make_norm_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    LineNorm norm;
    if (!norm_of(layer, &norm)) return kOk;
    std::unique_ptr<NormVulkan> form(new NormVulkan(norm));
    QUOLL_RETURN_IF_ERROR(form->load(norm, context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
