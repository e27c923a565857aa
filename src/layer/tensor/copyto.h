#ifndef QUOLL_LAYER_COPYTO_H
#define QUOLL_LAYER_COPYTO_H

#include "layer/common/schema.h"

namespace quoll {

// The first input with the second one written into it at an offset. The offset is given by starts,
// for the axes in `axes` (all if there are none), or by woffset, hoffset, doffset and coffset. A
// second input with fewer axes has size 1 on the outer ones. If it has the size of the first, it is
// the result, whatever the offset.
class CopyTo : public Operator<CopyTo> {
public:
    CopyTo();
    static void params(CopyTo& s, ParamVisitor& v);
    static void weights(CopyTo& s, WeightVisitor& v);
    static int shape(const CopyTo& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;

    // The first index on each of c, d, h, w; fails if the block does not fit.
    int offsets(const Shape& self, const Shape& src, int to[4]) const;

    int woffset, hoffset, doffset, coffset;
    Mat starts;  // s32; negative: from the end, -233: 0
    Mat axes;    // s32; 0 is the outermost, -1 the innermost
};

}  // namespace quoll

#endif
