#include "layer/padding.h"

#include <string.h>

#include "layer/cpu/layout/lanes.h"
#include "layer/cpu/packing.h"

namespace quoll {

namespace {

class PaddingCpu : public Padding {
public:
    PaddingCpu() { support_packing = true; }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    void pad(const Mat& in, const Widths& widths, Mat& out, const Option& opt) const;
};

// The rows of one element's lanes within a padded blob.
struct PaddedRows {
    const Mat& in;
    Mat& out;
    const LaneGather& gather;
    int left, right;
    bool constant;
    std::vector<int> columns;  // of the input, for each column of the output

    static void fill(unsigned char* to, const unsigned char* element, size_t bytes, size_t n) {
        for (size_t i = 0; i < n; i++) memcpy(to + i * bytes, element, bytes);
    }
    // Row `to` (counted in rows of out) is filled from row `from` of the input, or with the
    // constant element if `from` is negative.
    void run(int block, long from, size_t to, const unsigned char* element,
             bool lanes_missing) const {
        const size_t es = out.elemsize;
        unsigned char* row = Lanes(out).at(block * out.elempack, to * out.w);
        if (from < 0 || lanes_missing) fill(row, element, es, out.w);
        if (from < 0) return;
        gather.copy(block, (size_t)from * in.w, to * out.w + left, in.w);
        unsigned char* behind = row + (left + in.w) * es;
        if (constant) {
            if (lanes_missing) return;
            fill(row, element, es, left);
            fill(behind, element, es, right);
            return;
        }
        for (int x = 0; x < left; x++) memcpy(row + x * es, row + (left + columns[x]) * es, es);
        for (int x = 0; x < right; x++)
            memcpy(behind + x * es, row + (left + columns[left + in.w + x]) * es, es);
    }
};

void PaddingCpu::pad(const Mat& in, const Widths& widths, Mat& out, const Option& opt) const {
    const int dims = in.dims;
    const Shape from = in.logical_shape(), to = out.logical_shape();
    const auto indexes = [&](int axis) {
        return source_indexes(from.size(axis), widths.before[axis], widths.behind[axis], type);
    };
    const std::vector<int> lanes = indexes(0);
    const std::vector<int> rows = dims >= 3 ? indexes(dims - 2) : std::vector<int>(1, 0);
    const std::vector<int> planes = dims == 4 ? indexes(1) : std::vector<int>(1, 0);
    const LaneGather gather(in, out, lanes);
    const PaddedRows padded = {in,
                               out,
                               gather,
                               widths.before[dims - 1],
                               widths.behind[dims - 1],
                               type == kConstant,
                               indexes(dims - 1)};
    const int blocks = gather.blocks(), pack = out.elempack, in_rows = dims >= 3 ? in.h : 1;
    const int threads = threads_for(opt, (double)to.total());
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < blocks; i++) {
        unsigned char element[64 * 4] = {};
        bool missing = false;
        for (int k = 0; k < pack; k++) {
            unsigned char value[4];
            constant_of(i * pack + k, to, value);
            memcpy(element + k * (out.elemsize / pack), value, out.elemsize / pack);
            missing = missing || lanes[i * pack + k] < 0;
        }
        size_t row = 0;
        for (int z : planes)
            for (int y : rows)
                padded.run(i, z < 0 || y < 0 ? -1 : (long)z * in_rows + y, row++, element, missing);
    }
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
    // More lanes than 64 to an element are unknown; see Packing's out_elempack.
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
