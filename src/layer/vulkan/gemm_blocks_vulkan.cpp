// Gemm with weights of 3, 4, 6 or 8 bits in blocks. Those of 3 bits are stored in 4, of 6 in 8.
#include <math.h>
#include <string.h>
#include <algorithm>
#include <cmath>

#include "layer/common/block_quant.h"
#include "layer/nn/gemm.h"
#include "layer/vulkan/vulkan_layer.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

// The number of processors if no extension tells it, and the invocations of each.
const uint32_t kProcessors = 16, kResident = 1024;
// Of gemv_blocks.comp: invocations that a subgroup is expected to have and a group has at most, and
// loads of four words of weights that an invocation waits for at once; and the invocations of a
// processor: more would wait until others have ended.
const int kLanes = 32, kMostThreads = 512, kMostLoads = 2, kProcessorThreads = 1536;

class GemmBlocksVulkan : public VulkanLayer {
public:
    explicit GemmBlocksVulkan(const Gemm& layer)
        : layer_(layer),
          quant_(layer.quantize_term),
          bits_(quant_.kept_bits()),
          alpha_(layer.alpha) {}

    int load(VulkanContext& context) {
        QUOLL_RETURN_IF_ERROR(context.weights.add_words(packed(), &weight_));
        std::vector<float> scales = values_of(layer_.B_data_quantize_scales);
        for (float& scale : scales) scale = 1.f / scale;
        if (layer_.quantize_zeros) append(layer_.B_data_quantize_zeros, &scales);
        if (quant_.input_scales) append(layer_.B_data_input_scales, &scales);
        const bool alone = !layer_.quantize_zeros && !quant_.input_scales;
        if (alone && context.storage == Storage::f16) has_half_scales_ = fit_half(&scales);
        const Storage stored = has_half_scales_ ? Storage::f16 : Storage::f32;
        QUOLL_RETURN_IF_ERROR(context.weights.add(scales, stored, &scales_));
        c_ = scales_;
        if (layer_.C_data.empty()) return kOk;
        return context.weights.add(values_of(layer_.C_data), context.storage, &c_);
    }
    bool supports(const Shapes& in, const Shapes& out) const override {
        const LogMute mute;
        Gemm::Product p;
        return out[0].n == 1 && layer_.describe(in, &p) == kOk && p.m <= 65535;
    }
    bool fuses(StepFusion fusion, const Shapes& in, const Shapes&) const override {
        const LogMute mute;
        Gemm::Product p;
        if (fusion == StepFusion::kNormed)
            return in.size() == 1 && layer_.describe(in, &p) == kOk && p.m == 1;
        if (fusion == StepFusion::kPaired)
            return in.size() == 1 && layer_.describe(in, &p) == kOk && is_wide(p) &&
                   layer_.C_data.empty() && !quant_.input_scales;
        return (fusion == StepFusion::kEpilogue || fusion == StepFusion::kFactor) &&
               in.size() == 1 && layer_.C_data.empty();
    }
    bool pairs_with(const VulkanLayer& other) const override {
        const GemmBlocksVulkan& o = static_cast<const GemmBlocksVulkan&>(other);
        return bits_ == o.bits_ && quant_.block == o.quant_.block &&
               layer_.constantK == o.layer_.constantK && layer_.constantN == o.layer_.constantN &&
               !layer_.quantize_zeros == !o.layer_.quantize_zeros &&
               has_half_scales_ == o.has_half_scales_;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }
    int record_fused(Recorder& r, const Values& in, const Values& out,
                     const Fused& fused) const override {
        Shapes shapes;
        for (const Value& value : in) shapes.push_back(value.shape);
        Gemm::Product p;
        QUOLL_RETURN_IF_ERROR(layer_.describe(shapes, &p));
        if (takes_bytes(r, p)) {
            record_bytes(r, p, in, out, fused);
            return kOk;
        }
        const bool wide = is_wide(p);
        const uint32_t groups = (uint32_t)(p.n + 3) / 4;
        const int rows = p.m > 1 ? 4 : 1, matrices = fused.pair ? 2 : 1;
        const int lanes = wide ? lanes_for(r, p.k * bits_ / 32, groups, matrices) : 64;
        const auto* pair = static_cast<const GemmBlocksVulkan*>(fused.pair);
        Addend c = addend(r, p, in);
        if (fused.added) c = {r.read(*fused.added), fused.added->first, p.n, 1, 1.f, true};
        const Value& factor = fused.factor ? *fused.factor : out[0];
        r.dispatch(
            Shader::gemm_blocks,
            {bits_, rows, layer_.quantize_zeros != 0, quant_.input_scales, c.is_there, wide,
             fused.f.type == kActivationSwish, fused.factor != nullptr, fused.norm != nullptr,
             fused.norm && fused.norm->has_factors, pair != nullptr, lanes, matrices * lanes,
             has_half_scales_},
            {r.read(in[0]), weight_, scales_, pair ? pair->scales_ : c.values, r.write(out[0]),
             pair           ? pair->weight_
             : fused.factor ? r.read(factor)
                            : scales_,
             fused.norm ? fused.norm->factors : scales_},
            {p.m, p.n, p.k, words(), (int)quant_.blocks(p.k), quant_.block, in[0].first, p.k,
             c.first, c.row, c.column, out[0].first, alpha_, c.beta, fused.f.a, factor.first,
             fused.norm ? fused.norm->eps : 0.f, pair ? pair->alpha_ : 0.f},
            groups, (uint32_t)(p.m + rows - 1) / rows);
        return kOk;
    }

private:
    // Whether gemv_blocks.comp can compute it.
    bool takes_bytes(const Recorder& r, const Gemm::Product& p) const {
        return is_wide(p) && r.storage() == Storage::f16 && r.device().features().dot_products &&
               r.device().features().subgroup_sums && r.device().features().subgroup_shuffles &&
               !quant_.input_scales && p.k * bits_ % 128 == 0 && quant_.block * bits_ % 128 == 0 &&
               bytes_memory(p.k) <= r.device().limits().maxComputeSharedMemorySize;
    }
    // The shared memory of gemv_blocks.comp: two bytes for each value, 8 bytes per unit, sums of
    // squares.
    uint32_t bytes_memory(int depth) const {
        return (uint32_t)(2 * depth + 8 * units(depth) + kMostThreads);
    }
    // How gemv_blocks.comp divides a product.
    struct BytesTiling {
        int ahead;  // units of four words that an invocation loads of each at once
        int threads;
        uint32_t groups;
    };
    // A subgroup waits for few loads at once, so that many subgroups run on a processor. A group
    // converts x to bytes once for all of its subgroups, which then compute further columns.
    BytesTiling tiling(const Recorder& r, const Gemm::Product& p, bool pair) const {
        const uint32_t known = r.device().features().processors;
        const int processors = (int)(known ? known : kProcessors);
        BytesTiling t;
        const int steps = (units(p.k) + kLanes - 1) / kLanes;
        const int most = kMostLoads / (pair ? 2 : 1);
        const int chunks = (steps + most - 1) / most;
        t.ahead = (steps + chunks - 1) / chunks;
        const int each = (p.n + processors - 1) / processors;
        const int limit = (int)most_invocations(r, kMostThreads) / kLanes;
        t.threads = std::min(std::max(each, 4), limit) * kLanes;
        const int subgroups = t.threads / kLanes;
        const int at_once = processors * std::max(kProcessorThreads / t.threads, 1);
        t.groups = (uint32_t)std::min((p.n + subgroups - 1) / subgroups, at_once);
        return t;
    }
    int units(int depth) const { return depth * bits_ / 128; }
    void record_bytes(Recorder& r, const Gemm::Product& p, const Values& in, const Values& out,
                      const Fused& fused) const {
        const auto* pair = static_cast<const GemmBlocksVulkan*>(fused.pair);
        Addend c = addend(r, p, in);
        if (fused.added) c = {r.read(*fused.added), fused.added->first, p.n, 1, 1.f, true};
        const Value& factor = fused.factor ? *fused.factor : out[0];
        const BytesTiling t = tiling(r, p, pair != nullptr);
        r.dispatch(
            Shader::gemv_blocks,
            {bits_, t.ahead, layer_.quantize_zeros != 0, c.is_there,
             fused.f.type == kActivationSwish, fused.factor != nullptr, fused.norm != nullptr,
             fused.norm && fused.norm->has_factors, pair != nullptr, p.k, t.threads,
             has_half_scales_},
            {r.read(in[0]), weight_, scales_, pair ? pair->scales_ : c.values, r.write(out[0]),
             pair           ? pair->weight_
             : fused.factor ? r.read(factor)
                            : scales_,
             fused.norm ? fused.norm->factors : scales_},
            {p.n, p.k, words(), (int)quant_.blocks(p.k), quant_.block, in[0].first, c.first,
             c.column, out[0].first, alpha_, c.beta, fused.f.a, factor.first,
             fused.norm ? fused.norm->eps : 0.f, pair ? pair->alpha_ : 0.f},
            t.groups);
    }
    // One row, and blocks of whole words.
    bool is_wide(const Gemm::Product& p) const {
        return p.m == 1 && p.k * bits_ % 32 == 0 && quant_.block * bits_ % 32 == 0;
    }
    struct Addend {
        Binding values;
        uint32_t first;
        int row, column;  // steps
        float beta;
        bool is_there;
    };
    Addend addend(const Recorder& r, const Gemm::Product& p, const Values& in) const {
        const bool is_there = p.c_shape != Gemm::kNone, full = p.c_shape == Gemm::kFull;
        const bool of_rows = p.c_shape == Gemm::kRow1 || p.c_shape == Gemm::kRow;
        const bool is_input = is_there && !layer_.constantC;
        return {is_input ? r.read(in[1]) : c_, is_input ? in[1].first : 0,
                full ? p.n : (int)of_rows,     full || p.c_shape == Gemm::kColumn,
                layer_.alpha * layer_.beta,    is_there};
    }
    // Multiplies the scales by a power of two that brings the largest into the upper half of f16's
    // range, so that small ones keep their bits; alpha_ is multiplied by its inverse. Does nothing
    // and returns false if one is not finite.
    bool fit_half(std::vector<float>* scales) {
        float most = 0;
        for (float scale : *scales) {
            if (!std::isfinite(scale)) return false;
            most = std::max(most, fabsf(scale));
        }
        int exponent;
        frexpf(most, &exponent);
        const int kLargest = 15;  // 2^15 is below the largest of f16
        const float by = ldexpf(1.f, kLargest - exponent),
                    inverse = ldexpf(1.f, exponent - kLargest);
        if (!std::isnormal(by) || !std::isnormal(inverse * layer_.alpha)) return false;
        for (float& scale : *scales) scale *= by;
        alpha_ *= inverse;
        return true;
    }
    static void append(const Mat& more, std::vector<float>* values) {
        const std::vector<float> added = values_of(more);
        values->insert(values->end(), added.begin(), added.end());
    }
    static uint32_t most_invocations(const Recorder& r, uint32_t wanted) {
        const VkPhysicalDeviceLimits& limits = r.device().limits();
        return std::min<uint32_t>(
            {wanted, limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]});
    }
    // Invocations that share a sum of so many words: one for each word, as long as all groups run
    // at once.
    static int lanes_for(const Recorder& r, int words, uint32_t groups, int matrices) {
        const uint32_t most = most_invocations(r, 256);
        const uint32_t known = r.device().features().processors;
        const uint32_t at_once = (known ? known : kProcessors) * kResident;
        uint32_t lanes = 64;
        while ((int)lanes < words && 2 * lanes * matrices <= most &&
               2 * lanes * matrices * groups <= at_once)
            lanes *= 2;
        return (int)lanes;
    }
    int words() const { return (layer_.constantK * bits_ + 127) / 128 * 4; }  // of a row

    // Rows of whole groups of four words, the first value in the lowest bits, with half the range
    // added.
    std::vector<uint32_t> packed() const {
        const int64_t bytes = quant_.row_bytes(layer_.constantK);
        const uint32_t from_mask = (1u << quant_.bits) - 1, mask = (1u << bits_) - 1;
        const uint32_t sign = 1u << (quant_.bits - 1), half = 1u << (bits_ - 1);
        std::vector<uint32_t> all((size_t)layer_.constantN * words(), 0u);
        for (int row = 0; row < layer_.constantN; row++) {
            const unsigned char* p = (const unsigned char*)layer_.B_data.data + row * bytes;
            uint32_t* to = &all[(size_t)row * words()];
            if (bits_ == quant_.bits) {  // only what is signed is offset
                const uint32_t offset = bits_ == 4 ? 0x88888888u : 0x80808080u;
                memcpy(to, p, (size_t)bytes);
                for (int i = 0; i < words(); i++) to[i] ^= offset;
                continue;
            }
            for (int k = 0; k < layer_.constantK; k++) {
                const int64_t bit = (int64_t)k * quant_.bits, at = bit / 8;
                uint32_t word = p[at];
                if (at + 1 < bytes) word |= (uint32_t)p[at + 1] << 8;
                const uint32_t value = (word >> bit % 8 & from_mask) ^ sign;
                to[k * bits_ / 32] |= ((value - sign + half) & mask) << (k * bits_ % 32);
            }
        }
        return all;
    }

    const Gemm& layer_;
    const BlockQuant quant_;
    const int bits_;
    bool has_half_scales_ = false;  // times a power of two
    float alpha_;                   // of what is multiplied with the scales as they are stored
    Binding weight_, scales_, c_;
};

}  // namespace

int make_gemm_blocks_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const Gemm* gemm = as<Gemm>(&layer);
    if (!gemm || !BlockQuant(gemm->quantize_term)) return kOk;
    std::unique_ptr<GemmBlocksVulkan> form(new GemmBlocksVulkan(*gemm));
    QUOLL_RETURN_IF_ERROR(form->load(context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
