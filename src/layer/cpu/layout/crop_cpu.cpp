#include "layer/tensor/crop.h"

#include "layer/cpu/common/packing.h"
#include "layer/cpu/layout/channel_gather.h"
#include "layer/cpu/layout/layouts.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

class CropCpu : public Crop {
public:
    CropCpu() { support_packing = true; }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    void copy(const Mat& bottom, const Part& part, Mat& top, const Option& opt) const;
};

void CropCpu::copy(const Mat& bottom, const Part& part, Mat& top, const Option& opt) const {
    const Shape& size = part.size;
    std::vector<int> source(size.size(0));
    for (int i = 0; i < (int)source.size(); i++) source[i] = part.start.size(0) + i;
    const ChannelGather gather(bottom, top, source);
    if (bottom.w == top.w && (size.dims == 2 || bottom.h == top.h) && bottom.d == top.d)
        return gather.copy_all(opt);
    // In blobs of 2 axes h has the channels; the fields of missing axes, starts included, are 1.
    const int rows = size.dims == 2 ? 1 : size.h;
    const int y0 = size.dims == 2 ? 0 : part.start.h, z0 = size.dims == 4 ? part.start.d : 0;
    const int blocks = gather.blocks();
    const int threads = threads_for(opt, (double)size.total());
    const Bands bands(blocks, size.d * rows, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int) {
        for (int i = bands.begin(task); i < bands.end(task); i++) {
            const size_t z = z0 + i / rows, y = y0 + i % rows;
            gather.copy(bands.item(task), (z * bottom.h + y) * bottom.w + part.start.w,
                        (size_t)i * size.w, size.w);
        }
    });
}

void CropCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                           std::vector<BlobLayout>* out) const {
    BlobLayout& top = (*out)[0];
    if (is_given_on(in[0], &top) || top.shape.dims < 2) return;
    top.elempack = kept_pack(in[0], top.shape);
}

int CropCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms);
    const int* values;
    QUOLL_RETURN_IF_ERROR(values_of(bottoms, &values));
    Part part;
    QUOLL_RETURN_IF_ERROR(find_part(in, values, &part));
    tops.resize(1);
    if (part.size == in[0]) {
        tops[0] = bottoms[0];
        return kOk;
    }
    if (in[0].dims == 1) {
        std::vector<Mat> planar = bottoms;
        planar[0] = planar_view(bottoms[0]);
        return Crop::forward(planar, tops, opt);
    }
    Shape full = in[0];
    full.set_size(0, part.size.size(0));
    if (part.size == full &&
        share_channels(bottoms[0], part.start.size(0), part.size.size(0), &tops[0]))
        return kOk;
    const int channels = part.size.size(0), most = bottoms[0].elempack;
    const int pack = channels == in[0].size(0) ? most : pack_within(most, channels);
    tops[0].create(part.size, pack, opt.blob_allocator);
    if (tops[0].empty()) return kOutOfMemory;
    copy(bottoms[0], part, tops[0], opt);
    return kOk;
}

}  // namespace

Layer* create_Crop_fast_layer() { return new CropCpu; }

}  // namespace quoll
