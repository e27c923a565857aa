#include "layer/tensor/padding.h"

#include <string.h>

#include "layer/cpu/common/packing.h"
#include "layer/cpu/layout/channel_gather.h"
#include "layer/cpu/layout/layouts.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

class PaddingCpu : public Padding {
public:
    PaddingCpu() { support_packing = true; }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    void pad(const Mat& in, const Widths& widths, Mat& out, const Option& opt) const;
};

// `n` copies of an element of `bytes` bytes.
void fill(unsigned char* to, const unsigned char* element, size_t bytes, size_t n) {
    if (n == 0) return;
    // Each copy doubles what is there.
    memcpy(to, element, bytes);
    for (size_t done = 1; done < n;) {
        const size_t more = std::min(done, n - done);
        memcpy(to + done * bytes, to, more * bytes);
        done += more;
    }
}

// For one element, a call of memcpy would take longer than the copy.
__attribute__((noinline)) void copy_element(unsigned char* to, const unsigned char* from,
                                            size_t bytes) {
    switch (bytes) {
        case 2:
            memcpy(to, from, 2);
            return;
        case 4:
            memcpy(to, from, 4);
            return;
        case 32:
            memcpy(to, from, 32);
            return;
        case 64:
            memcpy(to, from, 64);
            return;
    }
    memcpy(to, from, bytes);
}

// Where the channels of one element go in the padded blob.
struct PaddedPlane {
    const ChannelGather& gather;
    unsigned char* out;  // the first element
    size_t es;           // bytes of an element
    int in_w, in_h, out_w;
    int left;
    const std::vector<int>&planes, &rows, &columns;  // of the input, for each index of the output

    // Makes rows first <= i < last of all planes. The border has one value.
    void constant(int block, int first, int last, const unsigned char* element,
                  bool channels_missing) const {
        size_t at = (size_t)first * out_w, filled = at;  // elements of the output
        if (channels_missing) fill(out + at * es, element, es, (size_t)(last - first) * out_w);
        size_t plane = first / rows.size(), row = first % rows.size();
        for (int i = first; i < last; i++, at += out_w, row++) {
            if (row == rows.size()) plane++, row = 0;
            const int z = planes[plane], y = rows[row];
            if (y < 0 || z < 0) continue;
            if (!channels_missing) fill(out + filled * es, element, es, at + left - filled);
            gather.copy(block, ((size_t)z * in_h + y) * in_w, at + left, in_w);
            filled = at + left + in_w;
        }
        if (!channels_missing) fill(out + filled * es, element, es, at - filled);
    }

    // The same where the border repeats what is within.
    void repeated(int block, int first, int last) const {
        size_t plane = first / rows.size(), row = first % rows.size();
        for (int i = first; i < last; i++, row++) {
            if (row == rows.size()) plane++, row = 0;
            const size_t at = (size_t)i * out_w;
            unsigned char* const to = out + at * es;
            gather.copy(block, ((size_t)planes[plane] * in_h + rows[row]) * in_w, at + left, in_w);
            for (int x = 0; x < left; x++)
                copy_element(to + x * es, to + (left + columns[x]) * es, es);
            for (int x = left + in_w; x < out_w; x++)
                copy_element(to + x * es, to + (left + columns[x]) * es, es);
        }
    }
};

void PaddingCpu::pad(const Mat& in, const Widths& widths, Mat& out, const Option& opt) const {
    const int dims = in.dims;
    const Shape from = in.logical_shape(), to = out.logical_shape();
    const auto indexes = [&](int axis) {
        return source_indexes(from.size(axis), widths.before[axis], widths.behind[axis], type);
    };
    const std::vector<int> channels = indexes(0);
    const std::vector<int> rows = dims >= 3 ? indexes(dims - 2) : std::vector<int>(1, 0);
    const std::vector<int> planes = dims == 4 ? indexes(1) : std::vector<int>(1, 0);
    const ChannelGather gather(in, out, channels);
    const std::vector<int> columns = indexes(dims - 1);
    const bool channels_only = in.w == out.w && in.d == out.d && (dims == 2 || in.h == out.h);
    const ChannelView into(out);
    const int blocks = gather.blocks(), pack = out.elempack, in_rows = dims >= 3 ? in.h : 1;
    const int threads = threads_for(opt, (double)to.total());
    const Bands bands(blocks, (int)(rows.size() * planes.size()), threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int) {
        const int i = bands.item(task), first = bands.begin(task), last = bands.end(task);
        const PaddedPlane plane = {gather, into.at(i * pack, 0),    out.elemsize, in.w, in_rows,
                                   out.w,  widths.before[dims - 1], planes,       rows, columns};
        unsigned char element[64 * 4] = {};
        bool missing = false;
        for (int k = 0; k < pack; k++) {
            unsigned char value[4];
            constant_of(i * pack + k, to, value);
            memcpy(element + k * (out.elemsize / pack), value, out.elemsize / pack);
            missing = missing || channels[i * pack + k] < 0;
        }
        if (channels_only) {
            const size_t at = (size_t)first * out.w, count = (size_t)(last - first) * out.w;
            if (missing) fill(plane.out + at * out.elemsize, element, out.elemsize, count);
            gather.copy(i, at, at, count);
        } else if (type == kConstant) {
            plane.constant(i, first, last, element, missing);
        } else {
            plane.repeated(i, first, last);
        }
    });
}

void PaddingCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                              std::vector<BlobLayout>* out) const {
    BlobLayout& top = (*out)[0];
    if (is_given_on(in[0], &top) || top.shape.dims < 2 || in[0].elempack > 64) return;
    top.elempack = kept_pack(in[0], top.shape);
}

int PaddingCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    const int* values;
    QUOLL_RETURN_IF_ERROR(widths_from(bottoms, &values));
    const Shape in = bottoms[0].logical_shape();
    Widths widths;
    Shape out;
    QUOLL_RETURN_IF_ERROR(padded_shape(in, values, &widths, &out));
    tops.resize(1);
    if (out == in) {
        tops[0] = bottoms[0];
        return kOk;
    }
    // More channels than 64 to an element are unknown; see Packing's out_elempack.
    if (in.dims == 1 || bottoms[0].elempack > 64) {
        std::vector<Mat> planar = bottoms;
        QUOLL_RETURN_IF_ERROR(with_elempack(bottoms[0], 1, opt, &planar[0]));
        return Padding::forward(planar, tops, opt);
    }
    const int most = bottoms[0].elempack;
    const int pack = out.size(0) == in.size(0) ? most : pack_within(most, out.size(0));
    tops[0].create(out, pack, opt.blob_allocator);
    if (tops[0].empty()) return kOutOfMemory;
    pad(bottoms[0], widths, tops[0], opt);
    return kOk;
}

}  // namespace

Layer* create_Padding_fast_layer() { return new PaddingCpu; }

}  // namespace quoll
