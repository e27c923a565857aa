#include "layer/cpu/conv/conv_padding.h"

#include <algorithm>

namespace quoll {

static bool has_padding(const ConvGeometry& g) {
    return g.x.before > 0 || g.x.after > 0 || g.y.before > 0 || g.y.after > 0 || g.z.before > 0 ||
           g.z.after > 0;
}

bool must_pad(const ConvolutionFields& s, const ConvGeometry& g, const ConvShape& shape) {
    return (s.pad_value != 0.f && has_padding(g)) || !ConvPlan::is_supported(shape);
}

void pad_axes(ConvGeometry* g) {
    for (WindowAxis* axis : {&g->x, &g->y, &g->z}) {
        axis->in += axis->before + axis->after;
        axis->before = axis->after = 0;
    }
}

int pad_input(const Mat& in, float value, const Option& opt, ConvGeometry* g, Mat* padded) {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    copy_make_border_3d(in, *padded, g->y.before, g->y.after, g->x.before, g->x.after, g->z.before,
                        g->z.after, BORDER_CONSTANT, value, temporary);
    if (padded->empty()) return kOutOfMemory;
    pad_axes(g);
    return kOk;
}

// Here, as this file is compiled for speed.
void add_shifted(const float* __restrict from, int width, int shift, float* __restrict to,
                 int count) {
    const int first = std::max(0, -shift), last = std::min(count, width - shift);
    for (int x = first; x < last; x++) to[x] += from[x + shift];
}

}  // namespace quoll
