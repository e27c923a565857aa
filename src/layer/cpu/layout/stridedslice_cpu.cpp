#include <string.h>

#include <algorithm>

#include "layer/cpu/layout/channel_gather.h"
#include "layer/cpu/layout/layouts.h"
#include "layer/cpu/layout/shared_copy.h"
#include "layer/tensor/stridedslice.h"

namespace quoll {

namespace {

// Takes any elempack: the axes within a channel are cut in whole elements, channels are shared
// where the cut falls between elements, else gathered.
class StridedSliceCpu : public StridedSlice {
public:
    StridedSliceCpu() { support_packing = true; }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    static bool is_whole(const Cut& cut, int size) {
        return cut.start == 0 && cut.count == size && cut.step == 1;
    }
    int cut_elements(const Mat& data, const Cut cuts[4], Mat* top, const Option& opt) const;
    int cut_channels(const Mat& data, bool shares, const Cut& cut, Mat* top,
                     const Option& opt) const;
};

// All axes but the outermost; top is in opt.blob_allocator.
int StridedSliceCpu::cut_elements(const Mat& data, const Cut cuts[4], Mat* top,
                                  const Option& opt) const {
    Shape shape = data.logical_shape();
    for (int i = 1; i < data.dims; i++) shape.set_size(i, cuts[i].count);
    top->create(shape, data.elempack, opt.blob_allocator);
    if (top->empty()) return kOutOfMemory;
    const Steps into = steps_of(*top);
    Steps from = steps_of(data);
    ptrdiff_t first = 0;
    for (int i = 1; i < data.dims; i++) {
        ptrdiff_t& step = from.step[axis_of_four(i, data.dims)];
        first += cuts[i].start * step;
        const int64_t size = shape.size(i) > 1 ? cuts[i].step : 0;  // a single index takes no step
        step *= size;
    }
    const Axes4 over = axes_of(*top);
    const size_t es = data.elemsize, count = (size_t)over.size[3];
    const ptrdiff_t step = from.step[3] * (ptrdiff_t)es;
    const double values = (double)shape.total();
    share_copy(over.size, values, opt, [&](int axis, int begin, int end) {
        int size[4] = {over.size[0], over.size[1], over.size[2], over.size[3]};
        size[axis] = end - begin;
        const Steps along[] = {from, into};
        const unsigned char* const src =
            (const unsigned char*)data.data + (first + begin * from.step[axis]) * (ptrdiff_t)es;
        unsigned char* const dst =
            (unsigned char*)top->data + begin * into.step[axis] * (ptrdiff_t)es;
        for_each_row(size, along, [&](const ptrdiff_t* at) {
            const unsigned char* s = src + at[0] * (ptrdiff_t)es;
            unsigned char* d = dst + at[1] * (ptrdiff_t)es;
            if (step >= 0) return copy_strided(s, (size_t)step, d, es, es, count);
            for (size_t i = 0; i < count; i++, s += step, d += es) memcpy(d, s, es);
        });
    });
    return kOk;
}

// shares: the output may be a part of data.
int StridedSliceCpu::cut_channels(const Mat& data, bool shares, const Cut& cut, Mat* top,
                                  const Option& opt) const {
    if (shares && cut.step == 1 && share_channels(data, cut.start, cut.count, top)) return kOk;
    Shape shape = data.logical_shape();
    shape.set_size(0, cut.count);
    top->create(shape, pack_within(data.elempack, cut.count), opt.blob_allocator);
    if (top->empty()) return kOutOfMemory;
    Scratch<int> source;
    for (int i = 0; i < cut.count; i++) source->push_back((int)(cut.start + i * cut.step));
    ChannelGather(data, *top, *source).copy_all(opt);
    return kOk;
}

void StridedSliceCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in,
                                   const Option&, std::vector<BlobLayout>* out) const {
    BlobLayout& top = (*out)[0];
    if (top.shape.total() == 0 || in[0].shape.dims < 2 || is_given_on(in[0], &top)) return;
    top.elempack = kept_pack(in[0], top.shape);
    Shape cut = in[0].shape;
    cut.set_size(0, top.shape.size(0));
    if (top.shape == cut && top.elempack == in[0].elempack) top.shares = 0;
}

int StridedSliceCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                             const Option& opt) const {
    const ShapeList in(bottoms);
    ShapeList inferred;
    QUOLL_RETURN_IF_ERROR(infer_shapes(*in, *inferred));
    const Mat& data = bottoms[0];
    std::vector<Mat> planar = bottoms;
    for (size_t i = 0; i < bottoms.size(); i++)
        if (bottoms[i].elempack > 1 && bottoms[i].dims == 1) planar[i] = planar_view(bottoms[i]);
    Cut cuts[4];
    Shape out;
    QUOLL_RETURN_IF_ERROR(plan(planar, cuts, &out));
    if (data.dims == 1 || out.total() == 0 || in[0].total() == 0) {
        QUOLL_RETURN_IF_ERROR(all_planar(planar, opt, &planar));
        return StridedSlice::forward(planar, tops, opt);
    }
    tops.resize(1);
    bool inner = false;
    for (int i = 1; i < data.dims; i++) inner = inner || !is_whole(cuts[i], in[0].size(i));
    const bool channels = !is_whole(cuts[0], in[0].size(0));
    // Copies only what remains: first channels are shared if possible, otherwise the inner axes are
    // cut.
    Mat part = data;
    if (channels && inner && cuts[0].step == 1 &&
        share_channels(data, cuts[0].start, cuts[0].count, &part))
        return cut_elements(part, cuts, &tops[0], opt);
    Option with = opt;
    if (channels) with.blob_allocator = opt.workspace_allocator;
    if (inner)
        QUOLL_RETURN_IF_ERROR(cut_elements(data, cuts, channels ? &part : &tops[0], with));
    else if (!channels)
        tops[0] = data;
    // Outputs are not in the workspace.
    return channels ? cut_channels(part, !inner, cuts[0], &tops[0], opt) : (int)kOk;
}

}  // namespace

Layer* create_StridedSlice_fast_layer() { return new StridedSliceCpu; }

}  // namespace quoll
