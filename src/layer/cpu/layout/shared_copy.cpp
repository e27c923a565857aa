#include "layer/cpu/layout/shared_copy.h"

namespace quoll {

void copy_block(const Mat& src, const Block& block, Mat& dst, const int to[4], const Option& opt) {
    const double elements = (double)block.size[0] * block.size[1] * block.size[2] * block.size[3];
    share_copy(block.size, elements * src.elempack, opt, [&](int axis, int begin, int end) {
        Block part = block;
        part.start[axis] += begin, part.size[axis] = end - begin;
        int at[4] = {to[0], to[1], to[2], to[3]};
        at[axis] += begin;
        copy_block(src, part, dst, at);
    });
}

}  // namespace quoll
