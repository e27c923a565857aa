// Planes of a blob resampled along w and h: what Interp and Resize share.
#ifndef QUOLL_LAYER_CPU_RESIZE_PLANES_H
#define QUOLL_LAYER_CPU_RESIZE_PLANES_H

#include <vector>

#include "layer/cpu/resize/resize.h"
#include "quoll/mat.h"
#include "quoll/option.h"

namespace quoll {

// The taps of one axis, as the kernels take them: `count` input indexes and factors for each index
// of the output. None: the axis stays as it is.
struct AxisTaps {
    int count = 0;
    std::vector<int> index;
    std::vector<float> factor;

    bool none() const { return count == 0; }
};

// The index of an elempack in kResizePack, -1 if kernels do not take it.
int resize_pack_index(int pack);

// f32, or 16-bit storage. Both have 2 to 4 axes, the same elempack and all axes but w and h alike;
// of 2 axes h is the lanes, and ys is none. xs and ys have as many taps as the variants, or none;
// not both none.
int resize_planes(const ResizeVariants& variants, const Mat& in, Mat& out, const AxisTaps& xs,
                  const AxisTaps& ys, const Option& opt);
// The same for single taps without factors, whatever the type.
void pick_planes(const Mat& in, Mat& out, const AxisTaps& xs, const AxisTaps& ys,
                 const Option& opt);

}  // namespace quoll

#endif
