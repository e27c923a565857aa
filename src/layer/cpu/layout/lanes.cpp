#include "layer/cpu/layout/lanes.h"

#include <string.h>

#include <algorithm>

#include "layer/cpu/packing.h"

namespace quoll {

int pack_within(int most, int size) {
    for (int pack : {16, 8, 4})
        if (pack <= most && size % pack == 0) return pack;
    return 1;
}

Mat planar_view(const Mat& m) {
    Mat view = m;
    view.w *= m.elempack;
    view.elemsize /= m.elempack;
    view.elempack = 1;
    view.cstep = view.nstep = view.w;
    return view;
}

int reshape_lanes(const Mat& m, const Shape& to, Mat* out, const Option& opt) {
    const Shape from = m.logical_shape();
    if (m.elempack == 1) return reshape_blob(m, to, out, opt);
    if (m.dims > 1 && to.dims > 1 && from.size(0) == to.size(0)) {
        Shape elements = to;
        elements.set_size(0, to.size(0) / m.elempack);
        return reshape_blob(m, elements, out, opt);
    }
    // One element behind the other: the order in memory is that of the values.
    const bool in_order =
        m.dims == 1 || (m.w * m.h * m.d == 1 && m.cstep == 1) || (m.dims == 2 && m.w == 1);
    Mat planar = m;
    if (in_order) {
        planar.dims = 1, planar.w = from.size(0), planar.h = planar.d = planar.c = 1;
        planar.elemsize /= m.elempack, planar.elempack = 1;
        planar.cstep = planar.w;
        if (planar.n == 1) planar.nstep = planar.w;
    } else {
        convert_packing(m, planar, 1, opt);
        if (planar.empty()) return kOutOfMemory;
    }
    return reshape_blob(planar, to, out, opt);
}

Lanes::Lanes(const Mat& m)
    : data((unsigned char*)m.data),
      count(m.logical_shape().size(0)),
      pack(m.elempack),
      scalar(m.elemsize / m.elempack) {
    row = m.dims == 2 ? m.w : (size_t)m.w * m.h * m.d;
    block_step = (m.dims >= 3 ? m.cstep : row) * pack * scalar;
}

namespace {

template <size_t kBytes>
void copy_pieces(const unsigned char* src, size_t src_step, unsigned char* dst, size_t dst_step,
                 size_t n) {
    for (size_t i = 0; i < n; i++) memcpy(dst + i * dst_step, src + i * src_step, kBytes);
}

}  // namespace

void copy_strided(const unsigned char* src, size_t src_step, unsigned char* dst, size_t dst_step,
                  size_t bytes, size_t n) {
    if (src_step == bytes && dst_step == bytes) {
        memcpy(dst, src, bytes * n);
        return;
    }
    switch (bytes) {  // sizes known to the compiler become single moves
        case 1:
            return copy_pieces<1>(src, src_step, dst, dst_step, n);
        case 2:
            return copy_pieces<2>(src, src_step, dst, dst_step, n);
        case 4:
            return copy_pieces<4>(src, src_step, dst, dst_step, n);
        case 8:
            return copy_pieces<8>(src, src_step, dst, dst_step, n);
        case 16:
            return copy_pieces<16>(src, src_step, dst, dst_step, n);
        case 32:
            return copy_pieces<32>(src, src_step, dst, dst_step, n);
        case 64:
            return copy_pieces<64>(src, src_step, dst, dst_step, n);
    }
    for (size_t i = 0; i < n; i++) memcpy(dst + i * dst_step, src + i * src_step, bytes);
}

// The widest power of two of lanes, so that each group of them in source[0 .. pack) stays together
// within one element of the source.
static int common_width(const int* source, int pack, int src_pack) {
    int width = 1;
    for (int w = 2; w <= pack && pack % w == 0 && src_pack % w == 0; w *= 2) {
        for (int i = 0; i < pack; i++) {
            const int first = source[i - i % w];
            if (first < 0 ? source[i] >= 0 : first % w != 0 || source[i] != first + i % w)
                return width;
        }
        width = w;
    }
    return width;
}

LaneGather::LaneGather(const Mat& src, const Mat& dst, const std::vector<int>& source)
    : src_(src), dst_(dst), source_(source) {
    for (int i = 0; i < dst_.count; i += dst_.pack)
        widths_.push_back(common_width(&source_[i], dst_.pack, src_.pack));
}

void LaneGather::copy(int block, size_t from, size_t to, size_t n) const {
    const int width = widths_[block];
    for (int lane = block * dst_.pack; lane < (block + 1) * dst_.pack; lane += width)
        if (source_[lane] >= 0)
            copy_strided(src_.at(source_[lane], from), src_.pack * src_.scalar, dst_.at(lane, to),
                         dst_.pack * dst_.scalar, width * src_.scalar, n);
}

void LaneGather::copy_all(const Option& opt) const {
    const int count = blocks();
    const int threads = threads_for(opt, (double)dst_.row * dst_.count);
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < count; i++) copy(i, 0, 0, dst_.row);
}

}  // namespace quoll
