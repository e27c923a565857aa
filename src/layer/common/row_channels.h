// The blobs of 1-D operators have their channels in rows; this shows them as channels to code that
// runs on these.
#ifndef QUOLL_LAYER_ROW_CHANNELS_H
#define QUOLL_LAYER_ROW_CHANNELS_H

#include "quoll/mat.h"

namespace quoll {

// A view of `m`, of 1 or 2 axes, whose rows are channels of one row each; their cstep is w, no
// multiple of 16 bytes. Any elempack.
inline Mat rows_as_channels(const Mat& m) {
    Mat view = m;
    view.dims = 3;
    view.c = m.h, view.h = 1;
    view.cstep = m.w;
    return view;
}

}  // namespace quoll

#endif
