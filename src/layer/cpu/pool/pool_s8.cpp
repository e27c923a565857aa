// Maxima of s8: the rows under a window become one, then its columns.
#include <string.h>

#include <algorithm>

#include "cpu.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/pool/pool_layer.h"

namespace quoll {

namespace {

typedef PoolingOperator::Axis Axis;
typedef PoolingOperator::Span Span;

// out: the largest of the rows under the window, `size` values.
void join_rows(const Int8Kernels& kernels, const int8_t* channel, size_t slice, const Span& y,
               const Span& z, size_t size, int8_t* out) {
    if (y.size < 1 || z.size < 1) {
        memset(out, -128, size);
        return;
    }
    for (int k = 0; k < z.size; k++) {
        for (int j = 0; j < y.size; j++) {
            const int8_t* row = channel + (size_t)(z.from + k) * slice + (y.from + j) * size;
            if (k == 0 && j == 0)
                memcpy(out, row, size);
            else
                kernels.largest(out, row, size, out);
        }
    }
}

template <int pack>
void join_columns(const Axis& axis, const int8_t* row, int8_t* out) {
    for (int x = 0; x < axis.out; x++, out += pack) {
        const Span span = axis.at(x);
        const int8_t* from = row + (size_t)span.from * pack;
        int8_t most[pack];
        memset(most, -128, pack);
        for (int i = 0; i < span.size; i++, from += pack)
            for (int l = 0; l < pack; l++) most[l] = most[l] > from[l] ? most[l] : from[l];
        memcpy(out, most, pack);
    }
}

}  // namespace

int PoolingCpu::forward_s8(const Mat& in, Mat& top_blob, const Option& opt) const {
    const int pack = in.elempack;
    if (pack > 16) return fail("s8 in packs of %d", pack);
    Axis ax, ay, az;
    QUOLL_RETURN_IF_ERROR(geometry(Shape(in.w, in.h, in.d, in.c), &ax, &ay, &az));
    void (*const columns)(const Axis&, const int8_t*, int8_t*) = pack == 16  ? join_columns<16>
                                                                 : pack == 8 ? join_columns<8>
                                                                 : pack == 4 ? join_columns<4>
                                                                             : join_columns<1>;
    const size_t row = (size_t)in.w * pack, out_row = (size_t)ax.out * pack;
    const size_t step = global_pooling ? (size_t)pack : channels(top_blob).cstep * pack;
    const int threads = threads_for(opt, (double)in.w * in.h * in.d * in.c * pack);
    Mat memory((int)row, threads, (size_t)1u, opt.workspace_allocator);
    if (memory.empty()) return kOutOfMemory;
    const Int8Kernels& kernels = int8_kernels();
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < in.c * az.out; i++) {
        const int q = i / az.out, z = i % az.out;
        const int8_t* channel = (const int8_t*)in.data + q * in.cstep * pack;
        int8_t* joined = memory.row<int8_t>(get_omp_thread_num());
        int8_t* out = (int8_t*)top_blob.data + q * step + (size_t)z * ay.out * out_row;
        for (int y = 0; y < ay.out; y++, out += out_row) {
            join_rows(kernels, channel, row * in.h, ay.at(y), az.at(z), row, joined);
            columns(ax, joined, out);
        }
    }
    return kOk;
}

}  // namespace quoll
