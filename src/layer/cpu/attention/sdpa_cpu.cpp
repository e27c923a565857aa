#include "layer/cpu/attention/attend.h"
#include "layer/sequence/sdpa.h"

namespace quoll {

namespace {

// int8 arithmetic runs on the reference.
class SDPACpu : public SDPA {
public:
    int create_pipeline(const Option& opt) override {
        kernels_ = &host_kernel_set();
        return SDPA::create_pipeline(opt);
    }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override {
        if (int8_scale_term) return SDPA::forward(bottoms, tops, opt);
        Call call;
        QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &call));
        std::vector<AttentionHead> heads;
        for (int q = 0; q < bottoms[0].c; q++)
            heads.push_back(head_of(bottoms[0], call, tops[0], q));
        return attend_fast(*kernels_, heads, call.heads_per_group, opt);
    }

private:
    const KernelSet* kernels_ = nullptr;
};

}  // namespace

Layer* create_SDPA_fast_layer() { return new SDPACpu; }

}  // namespace quoll
