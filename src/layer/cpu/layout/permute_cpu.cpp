#include "layer/tensor/permute.h"

#include "layer/cpu/common/packing.h"
#include "layer/cpu/layout/channel_gather.h"
#include "layer/cpu/layout/layout.h"
#include "runtime/parts.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// The input of any elempack; the output planar, unless what reads it wants its channels in blocks
// and these are the input's columns, parts of a row each.
class PermuteCpu : public Permute {
public:
    PermuteCpu() { support_packing = true; }
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    int pack_of(const BlobLayout& in, const Shape& out, const Option& opt) const;

    const KernelSet* kernels_ = &host_kernel_set();
};

// The input's axes that become c, d, h, w of the output.
struct Gather {
    const unsigned char* src;
    unsigned char* dst;
    size_t scalar;       // bytes
    int size[4];         // of the output
    size_t dst_step[4];  // bytes
    size_t src_step[4];  // bytes; along `outermost` from one element to the next
    int outermost;       // the axis that was the input's outermost one
    int pack;
    const LayoutKernels* kernels;

    size_t src_offset(int axis, int i) const {
        return axis == outermost ? i / pack * src_step[axis] + i % pack * scalar
                                 : i * src_step[axis];
    }
    void skip_single_columns();
    void row(const unsigned char* from, unsigned char* to, int columns) const;
    template <class T>
    void tile(const unsigned char* from, unsigned char* to, int across, int first, int count) const;
    void plane(int across, const unsigned char* from, unsigned char* to, int columns) const;
    void run(int i, int j, int across, int first, int columns) const;
    bool has_short_rows() const;
    int longest_axis() const;
    void short_rows(int along, int first, int count) const;
    void blocks(int axis, int row, int begin, int end) const;
};

enum { kColumns = 16, kWideColumns = 64 };
// Bytes of a row that moves as a whole, and such rows of a task, whose lines stay in the
// first-level cache.
enum { kShortRow = 32, kShortRows = 128 };

// Innermost axes of one element leave rows to the axis before them.
void Gather::skip_single_columns() {
    int last = 3;
    while (last > 0 && size[last] == 1) last--;
    if (dst_step[last] != scalar) return;  // channels with gaps between
    const int skipped = 3 - last;
    for (int axis = 3; axis >= 0; axis--) {
        const int from = axis - skipped;
        size[axis] = from < 0 ? 1 : size[from];
        dst_step[axis] = from < 0 ? 0 : dst_step[from];
        src_step[axis] = from < 0 ? 0 : src_step[from];
    }
    outermost += skipped;
}

// Columns of one row of the output, whole elements of the input.
void Gather::row(const unsigned char* from, unsigned char* to, int columns) const {
    if (outermost == 3)  // whole elements, whose channels stay neighbours
        copy_strided(from, src_step[3], to, pack * scalar, pack * scalar, columns / pack);
    else
        copy_strided(from, src_step[3], to, scalar, scalar, columns);
}

// Columns first, first + 1, ... of all rows along the axis `across`, which follow one another in
// the input: few enough that the lines of the output they write stay in cache.
template <class T>
void Gather::tile(const unsigned char* from, unsigned char* to, int across, int first,
                  int count) const {
    const int rows = size[across];
    for (int i = 0; i < rows; i++) {
        const unsigned char* s = from + i * sizeof(T) + first * src_step[3];
        T* d = (T*)(to + i * dst_step[across]) + first;
        for (int k = 0; k < count; k++) d[k] = *(const T*)(s + k * src_step[3]);
    }
}

void Gather::plane(int across, const unsigned char* from, unsigned char* to, int columns) const {
    if (scalar == 4 && src_step[3] % 4 == 0)
        return kernels->transpose({(const float*)from, src_step[3] / 4, (float*)to,
                                   dst_step[across] / 4, (size_t)size[across], (size_t)columns});
    if (kHasHalfStorage && scalar == 2 && src_step[3] % 2 == 0)
        return kernels->transpose_halves({(const uint16_t*)from, src_step[3] / 2, (uint16_t*)to,
                                          dst_step[across] / 2, (size_t)size[across],
                                          (size_t)columns});
    for (int x = 0; x < columns; x += kColumns) {
        const int count = std::min<int>(kColumns, columns - x);
        if (scalar == 4)
            tile<uint32_t>(from, to, across, x, count);
        else if (scalar == 2)
            tile<uint16_t>(from, to, across, x, count);
        else
            tile<uint8_t>(from, to, across, x, count);
    }
}

// The part of the output with indexes i, j on the two axes that are neither w nor `across`: columns
// first, first + 1, ... of it.
void Gather::run(int i, int j, int across, int first, int columns) const {
    int other[2], count = 0;
    for (int axis = 0; axis < 3; axis++)
        if (axis != across) other[count++] = axis;
    const unsigned char* from =
        src + src_offset(other[0], i) + src_offset(other[1], j) + src_offset(3, first);
    unsigned char* to = dst + i * dst_step[other[0]] + j * dst_step[other[1]] + first * scalar;
    const bool neighbours = pack == 1 && src_step[across] == scalar && src_step[3] != scalar;
    if (neighbours) return plane(across, from, to, columns);
    for (int k = 0; k < size[across]; k++)
        row(from + src_offset(across, k), to + k * dst_step[across], columns);
}

// Whether the rows are those of the input and so short that a call for each takes longer than they
// do.
bool Gather::has_short_rows() const {
    return src_step[3] == scalar && outermost != 3 && size[3] * scalar <= kShortRow &&
           size[longest_axis()] > size[3];
}

// Beside w.
int Gather::longest_axis() const { return (int)(std::max_element(size, size + 3) - size); }

// Rows first, first + 1, ... along that axis, of all indexes on the others.
void Gather::short_rows(int along, int first, int count) const {
    const int a = along == 0 ? 1 : 0, b = along == 2 ? 1 : 2;
    for (int i = 0; i < size[a]; i++)
        for (int j = 0; j < size[b]; j++)
            copy_strided(src + i * src_step[a] + j * src_step[b] + first * src_step[along],
                         src_step[along],
                         dst + i * dst_step[a] + j * dst_step[b] + first * dst_step[along],
                         dst_step[along], size[3] * scalar, (size_t)count);
}

// Columns [begin, end) of a row of all blocks of channels, which are axis `axis` of the output: the
// parts of an element lie beside each other in the input.
void Gather::blocks(int axis, int row, int begin, int end) const {
    const int deep = axis < 1 ? row / size[2] : 0, high = axis < 2 ? row % size[2] : 0;
    const size_t bytes = dst_step[3];
    for (int first = begin; first < end; first += kWideColumns) {
        const unsigned char* from =
            src + src_offset(1, deep) + src_offset(2, high) + src_offset(3, first);
        unsigned char* to = dst + deep * dst_step[1] + high * dst_step[2] + first * bytes;
        for (int b = 0; b < size[axis]; b++)
            copy_strided(from + b * bytes, src_step[3], to + b * dst_step[axis], bytes, bytes,
                         std::min<int>(kWideColumns, end - first));
    }
}

int PermuteCpu::pack_of(const BlobLayout& in, const Shape& out, const Option& opt) const {
    int source[4];
    if (!feeds_channels || in.elempack != 1 || axis_order(out.dims, source) != kOk) return 1;
    return source[0] == out.dims - 1 ? best_elempack(*kernels_, out.size(0), opt) : 1;
}

void PermuteCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in,
                              const Option& opt, std::vector<BlobLayout>* out) const {
    if (order_type != 0 && in[0].shape.dims != 1) {
        (*out)[0].elempack = pack_of(in[0], (*out)[0].shape, opt);
        return;
    }
    (*out)[0].elempack = in[0].elempack, (*out)[0].shares = 0;
}

int PermuteCpu::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    if (order_type == 0 || bottom.dims == 1) {
        top = bottom;
        return kOk;
    }
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    BlobLayout in;
    in.elempack = bottom.elempack;
    const int pack = pack_of(in, out[0], opt);
    top.create(out[0], pack, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    const int dims = top.dims;
    int source[4];
    QUOLL_RETURN_IF_ERROR(axis_order(dims, source));
    const Axes4 from = axes_of(bottom), into = axes_of(top);
    Gather g = {};
    g.src = (const unsigned char*)bottom.data, g.dst = (unsigned char*)top.data;
    g.scalar = top.elemsize / pack, g.pack = bottom.elempack;
    g.kernels = kernels_->layout;
    for (int axis = 0; axis < 4; axis++) {
        g.size[axis] = into.size[axis];
        g.dst_step[axis] = into.step[axis] * top.elemsize;
        const int i = axis - axis_of_four(0, dims);  // of the output, from the outermost
        if (i < 0) continue;
        g.src_step[axis] = from.step[axis_of_four(source[i], dims)] * bottom.elemsize;
        if (source[i] == 0) g.outermost = axis;
    }
    if (pack == 1 && g.pack == 1) g.skip_single_columns();
    // The axis beside w whose values are neighbours in the input, so that both sides are walked in
    // tiles; h if w itself is.
    int across = 2;
    for (int axis = 0; axis < 3; axis++)
        if (g.size[axis] > 1 && g.src_step[axis] == bottom.elemsize) across = axis;
    const int a = across == 0 ? 1 : 0, b = across == 2 ? 1 : 2;
    const int threads = threads_for(opt, (double)out[0].total());
    if (pack > 1) {
        const int axis = axis_of_four(0, dims);
        const int64_t rows = (int64_t)(axis < 1 ? g.size[1] : 1) * (axis < 2 ? g.size[2] : 1);
        const Bands bands((int)rows, g.size[3], threads);
        run_tasks(bands.count(), threads, [&](int64_t task, int) {
            g.blocks(axis, bands.item(task), bands.begin(task), bands.end(task));
        });
        return kOk;
    }
    if (g.pack == 1 && g.has_short_rows()) {
        const int along = g.longest_axis(), rows = g.size[along];
        run_tasks((rows + kShortRows - 1) / kShortRows, threads, [&](int64_t task, int) {
            const int first = (int)task * kShortRows;
            g.short_rows(along, first, std::min<int>(kShortRows, rows - first));
        });
        return kOk;
    }
    const int some = g.scalar == 2 ? 2 * kColumns : (int)kColumns;  // which kernels take
    const int w = g.size[3], part = some % g.pack == 0 ? some : w;
    const Bands bands(g.size[a] * g.size[b], (w + part - 1) / part, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int) {
        const int i = bands.item(task), first = bands.begin(task) * part;
        const int columns = std::min(w, bands.end(task) * part) - first;
        g.run(i / g.size[b], i % g.size[b], across, first, columns);
    });
    return kOk;
}

}  // namespace

Layer* create_Permute_fast_layer() { return new PermuteCpu; }

}  // namespace quoll
