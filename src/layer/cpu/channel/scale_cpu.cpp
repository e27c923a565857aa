#include "layer/cpu/channel/scale_cpu.h"

#include "layer/common/channels.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/channel/apply.h"
#include "layer/cpu/common/packing.h"

namespace quoll {

ScaleCpu::ScaleCpu() : kernels_(&host_kernel_set()) {
    support_packing = support_fp16_storage = support_bf16_storage = true;
}

int ScaleCpu::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    apply_to_channels(kernels_->channel->affine, blob, scale_data,
                      bias_term ? (const float*)bias_data : nullptr, false, opt);
    return kOk;
}

int ScaleCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const {
    if (!scale_is_input()) return Scale::forward(bottoms, tops, opt);
    std::vector<Shape> in = shapes_of(bottoms), out(tops.size());
    QUOLL_RETURN_IF_ERROR(infer_shapes(in, out));
    Mat scales;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottoms[1], 1, opt, &scales));
    QUOLL_RETURN_IF_ERROR(widened(scales, opt, &scales));
    scales = scales.reshape((int)in[1].total(), opt.workspace_allocator);
    tops.resize(out.size());
    tops[0] = bottoms[0].clone(opt.blob_allocator);
    if (tops[0].empty() || scales.empty()) return kOutOfMemory;
    apply_to_channels(kernels_->channel->affine, tops[0], scales, nullptr, false, opt);
    if (tops.size() > 1) tops[1] = bottoms[1];
    return kOk;
}

void ScaleCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                            std::vector<BlobLayout>* out) const {
    (*out)[0].elempack = in[0].elempack;
    if (out->size() < 2 || in.size() < 2) return;
    (*out)[1] = in[1];
    (*out)[1].shares = 1;
}

Layer* create_Scale_fast_layer() { return new ScaleCpu; }

}  // namespace quoll
