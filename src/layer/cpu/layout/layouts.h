// How layers that move values predict the layout of their outputs (Layer::plan_layouts).
#ifndef QUOLL_LAYER_CPU_LAYOUT_LAYOUTS_H
#define QUOLL_LAYER_CPU_LAYOUT_LAYOUTS_H

#include <memory>
#include <vector>

#include "layer/cpu/layout/channel_gather.h"
#include "quoll/layer.h"

namespace quoll {

// That of the input if the outermost axis stays as it is, otherwise the widest one up to it that
// divides the new axis.
inline int kept_pack(const BlobLayout& in, const Shape& out) {
    const bool same = in.shape.dims == out.dims && in.shape.size(0) == out.size(0);
    return same ? in.elempack : pack_within(in.elempack, out.size(0));
}

// The output is the input if it has its shape.
inline bool is_given_on(const BlobLayout& in, BlobLayout* out) {
    if (in.shape != out->shape) return false;
    out->elempack = in.elempack, out->shares = 0;
    return true;
}

// For layers that do the same with each channel of each item (Traits::kPlansBatch): sets *plan if
// all inputs are batches of equally many items of three axes or more.
void plan_items(const std::vector<Shape>& in, std::shared_ptr<const LayerPlan>* plan);
// Calls layer.forward() for blobs whose channels are those of all items; kOneByOne if there are
// gaps between items.
int forward_items(const Layer& layer, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                  const Option& opt);

// What share_channels and reshape_channels do with blobs of this layout.
bool shares_channels(const BlobLayout& in, int first, int count);
void plan_reshaped(const BlobLayout& in, BlobLayout* out);

}  // namespace quoll

#endif
