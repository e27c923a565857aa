#include "layer/common/scratch.h"
#include "layer/cpu/attention/attend.h"
#include "layer/cpu/cast/storage.h"
#include "layer/sequence/sdpa.h"

namespace quoll {

namespace {

// int8 arithmetic runs on the reference.
class SDPACpu : public SDPA {
public:
    int create_pipeline(const Option& opt) override {
        support_bf16_storage = opt.use_bf16_storage && !kv_cache && !int8_scale_term;
        return SDPA::create_pipeline(opt);
    }
    int plan(const std::vector<Shape>& bottoms, const Option& opt,
             std::shared_ptr<const LayerPlan>* plan) const override {
        plan->reset();
        if (int8_scale_term) return kOk;
        std::vector<Shape> out;
        QUOLL_RETURN_IF_ERROR(infer_shapes(bottoms, out));
        const Shape &q = bottoms[0], &k = bottoms[1], &v = bottoms[2];
        AttentionHead h = {};
        h.src = q.h, h.dst = kv_cache ? out[1].h : k.h;
        h.size = q.w, h.out_size = v.w;
        h.q.row = q.w, h.out_row = v.w;
        AttentionRounding rounding;
        rounding.exact_values = v.dtype == DType::bf16;
        *plan = std::make_shared<AttentionPlan>(*kernels_, h, q.c, q.c / k.c, rounding, opt);
        return kOk;
    }
    int forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        bool, const Option& opt) const override {
        return run(static_cast<const AttentionPlan&>(plan), bottoms, tops, opt);
    }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override {
        if (int8_scale_term) return SDPA::forward(bottoms, tops, opt);
        std::shared_ptr<const LayerPlan> made;
        QUOLL_RETURN_IF_ERROR(plan(*ShapeList(bottoms), opt, &made));
        return run(static_cast<const AttentionPlan&>(*made), bottoms, tops, opt);
    }

private:
    // bf16 blobs are widened block by block where all are such.
    int run(const AttentionPlan& plan, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
            const Option& opt) const {
        const bool narrow = bottoms[0].dtype == DType::bf16;
        const bool stored = narrow && plan.blocks && bottoms[1].dtype == DType::bf16 &&
                            bottoms[2].dtype == DType::bf16;
        std::vector<Mat> in(bottoms), wide;
        // MaskTerms are few.
        for (size_t i = 0; i < in.size(); i++)
            if (!in[i].empty() && (!stored || (i >= 3 && attn_mask == kMaskTerms)))
                QUOLL_RETURN_IF_ERROR(widened(bottoms[i], opt, &in[i]));
        const bool rounds = narrow && !stored;
        Option temporary = opt;
        temporary.blob_allocator = opt.workspace_allocator;
        QUOLL_RETURN_IF_ERROR(run(plan, in, stored ? &kernels_->cast->bf16 : nullptr,
                                  rounds ? wide : tops, rounds ? temporary : opt));
        if (!rounds) return kOk;
        tops.resize(1);
        cast_float32_to_bfloat16(wide[0], tops[0], opt);
        return tops[0].empty() ? (int)kOutOfMemory : (int)kOk;
    }
    int run(const AttentionPlan& plan, const std::vector<Mat>& bottoms,
            const StorageKernels* stored, std::vector<Mat>& tops, const Option& opt) const {
        Call call;
        QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &call));
        std::vector<AttentionHead> heads;
        for (int q = 0; q < bottoms[0].c; q++)
            heads.push_back(head_of(bottoms[0], call, tops[0], q));
        const bool narrow_mask = stored && call.mask && call.mask->dtype == DType::bf16;
        return attend_fast(*kernels_, heads, call.heads_per_group, plan,
                           {stored, stored, narrow_mask ? stored : nullptr}, opt);
    }

    const KernelSet* kernels_ = &host_kernel_set();
};

}  // namespace

Layer* create_SDPA_fast_layer() { return new SDPACpu; }

}  // namespace quoll
