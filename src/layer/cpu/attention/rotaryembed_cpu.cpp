#include "layer/cpu/attention/attention.h"
#include "layer/cpu/common/packing.h"
#include "layer/sequence/rotaryembed.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

class RotaryEmbedCpu : public RotaryEmbed {
public:
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override {
        QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
        const Mat& x = bottoms[0];
        const AttentionKernels& k = *kernels_->attention;
        const TurnRow turn = interleaved ? k.turn_pairs : k.turn_halves;
        const int half = x.w / 2, second = !interleaved && bottoms[1].w == x.w ? half : 0;
        const int threads = threads_for(opt, (double)x.w * x.h * x.c * 2);
        parallel_for((int64_t)x.c * x.h, threads, [&](int64_t i) {
            const int q = (int)(i / x.h), y = (int)(i % x.h);
            const size_t row = (size_t)y * x.w;
            turn((const float*)x.data + q * x.cstep + row, bottoms[1].row(y), bottoms[2].row(y),
                 half, second, (float*)tops[0].data + q * tops[0].cstep + row);
        });
        return kOk;
    }

private:
    const KernelSet* kernels_ = &host_kernel_set();
};

}  // namespace

Layer* create_RotaryEmbed_fast_layer() { return new RotaryEmbedCpu; }

}  // namespace quoll
