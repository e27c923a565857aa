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

// For runs of a few values, calling memcpy takes longer than the copy.
template <class T>
void copy_short_runs(const T* src, size_t src_step, T* dst, size_t dst_step, size_t length,
                     size_t runs) {
    for (size_t i = 0; length == 1 && i < runs; i++) dst[i * dst_step] = src[i * src_step];
    for (size_t i = 0; length > 1 && i < runs; i++)
        for (size_t k = 0; k < length; k++) dst[i * dst_step + k] = src[i * src_step + k];
}

}  // namespace

void copy_block(const Mat& src, const Block& block, Mat& dst, const int to[4]) {
    const Axes4 from = axes_of(src), into = axes_of(dst);
    const unsigned char* s = (const unsigned char*)src.data;
    unsigned char* t = (unsigned char*)dst.data;
    const size_t bytes = block.size[3] * src.elemsize;
    if (bytes == 0) return;
    for (int i = 0; i < 4; i++) {
        s += block.start[i] * from.step[i] * src.elemsize;
        t += to[i] * into.step[i] * dst.elemsize;
    }
    // Planes are joined if the distance between rows stays the same from one to the next in both
    // blobs.
    const size_t height = block.size[2];
    const bool one = from.step[1] == height * from.step[2] && into.step[1] == height * into.step[2];
    const size_t rows = one ? height * block.size[1] : height, planes = one ? 1 : block.size[1];
    const bool is_short = block.size[3] <= 4;
    for (int i = 0; i < block.size[0]; i++) {
        for (size_t j = 0; j < planes; j++) {
            const unsigned char* a = s + (i * from.step[0] + j * from.step[1]) * src.elemsize;
            unsigned char* b = t + (i * into.step[0] + j * into.step[1]) * dst.elemsize;
            if (is_short && src.elemsize == 4) {
                copy_short_runs((const uint32_t*)a, from.step[2], (uint32_t*)b, into.step[2],
                                block.size[3], rows);
                continue;
            }
            if (is_short && src.elemsize == 2) {
                copy_short_runs((const uint16_t*)a, from.step[2], (uint16_t*)b, into.step[2],
                                block.size[3], rows);
                continue;
            }
            for (size_t k = 0; k < rows; k++)
                memcpy(b + k * into.step[2] * dst.elemsize, a + k * from.step[2] * src.elemsize,
                       bytes);
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
