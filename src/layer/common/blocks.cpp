#include "layer/common/blocks.h"

#include <string.h>

namespace quoll {

Axes4 axes_of(const Mat& m) {
    Axes4 a = {{1, 1, 1, 1}, {0, 0, 0, 1}};
    a.size[3] = m.w;
    if (m.dims >= 2) a.size[2] = m.h, a.step[2] = m.w;
    if (m.dims == 3) a.size[1] = m.c, a.step[1] = m.cstep;
    if (m.dims == 4) {
        a.size[1] = m.d, a.step[1] = (size_t)m.w * m.h;
        a.size[0] = m.c, a.step[0] = m.cstep;
    }
    return a;
}

Block whole_block(const Mat& m) {
    const Axes4 a = axes_of(m);
    Block block = {};
    for (int i = 0; i < 4; i++) block.size[i] = a.size[i];
    return block;
}

namespace {

// Runs of a few values each: a call of memcpy takes longer than the copy.
template <class T>
void copy_short_runs(const T* src, size_t src_step, T* dst, size_t dst_step, size_t length,
                     size_t runs) {
    for (size_t i = 0; i < runs; i++)
        for (size_t k = 0; k < length; k++) dst[i * dst_step + k] = src[i * src_step + k];
}

}  // namespace

void copy_block(const Mat& src, const Block& block, Mat& dst, const int to[4]) {
    const Axes4 from = axes_of(src), into = axes_of(dst);
    const unsigned char* s = (const unsigned char*)src.data;
    unsigned char* t = (unsigned char*)dst.data;
    const size_t bytes = block.size[3] * src.elemsize;
    if (bytes == 0) return;
    const bool is_short = src.elemsize == 4 && block.size[3] <= 4;
    for (int i = 0; i < block.size[0]; i++) {
        for (int j = 0; j < block.size[1]; j++) {
            if (is_short) {
                const size_t a = (block.start[0] + i) * from.step[0] +
                                 (block.start[1] + j) * from.step[1] +
                                 block.start[2] * from.step[2] + block.start[3];
                const size_t b = (to[0] + i) * into.step[0] + (to[1] + j) * into.step[1] +
                                 to[2] * into.step[2] + to[3];
                copy_short_runs((const uint32_t*)s + a, from.step[2], (uint32_t*)t + b,
                                into.step[2], block.size[3], block.size[2]);
                continue;
            }
            for (int k = 0; k < block.size[2]; k++) {
                const size_t a = (block.start[0] + i) * from.step[0] +
                                 (block.start[1] + j) * from.step[1] +
                                 (block.start[2] + k) * from.step[2] + block.start[3];
                const size_t b = (to[0] + i) * into.step[0] + (to[1] + j) * into.step[1] +
                                 (to[2] + k) * into.step[2] + to[3];
                memcpy(t + b * dst.elemsize, s + a * src.elemsize, bytes);
            }
        }
    }
}

int reshape_blob(const Mat& m, const Shape& to, Mat* out, const Option& opt) {
    Allocator* const a = opt.blob_allocator;
    *out = to.dims == 1   ? m.reshape(to.w, a)
           : to.dims == 2 ? m.reshape(to.w, to.h, a)
           : to.dims == 3 ? m.reshape(to.w, to.h, to.c, a)
                          : m.reshape(to.w, to.h, to.d, to.c, a);
    return out->empty() ? (int)kOutOfMemory : (int)kOk;
}

int resolve_axis(const Layer& layer, int axis, int dims, int* result) {
    if (axis < -dims || axis >= dims)
        return layer.fail("axis %d: expected %d to %d", axis, -dims, dims - 1);
    *result = axis < 0 ? axis + dims : axis;
    return kOk;
}

}  // namespace quoll
