#include "layer/vision/pixelshuffle.h"

#include "layer/cpu/common/packing.h"
#include "layer/cpu/layout/channel_gather.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

class PixelShuffleCpu : public PixelShuffle {
public:
    PixelShuffleCpu() { support_packing = true; }
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    int shuffle_blocks(const Mat& bottom, Mat& top, const Option& opt) const;
    template <class T>
    void shuffle(const Mat& bottom, Mat& top, const Option& opt) const;
};

// out[x * r + j] = in[j][x * step] for j < r, x < w; out elements are `out_step` apart. R: r where
// it is known to the compiler, else 0.
template <class T, int R>
void interleave(const T* const* in, size_t step, int r, T* out, size_t out_step, int w) {
    if (R > 0) r = R;
    for (int x = 0; x < w; x++)
        for (int j = 0; j < r; j++) out[((size_t)x * r + j) * out_step] = in[j][x * step];
}

template <class T>
void interleave_rows(const T* const* in, size_t step, int r, T* out, size_t out_step, int w) {
    // Planar rows to planar rows become vector shuffles.
    if (step == 1 && out_step == 1) {
        if (r == 2) return interleave<T, 2>(in, 1, r, out, 1, w);
        if (r == 3) return interleave<T, 3>(in, 1, r, out, 1, w);
        if (r == 4) return interleave<T, 4>(in, 1, r, out, 1, w);
    }
    if (r == 2) return interleave<T, 2>(in, step, r, out, out_step, w);
    interleave<T, 0>(in, step, r, out, out_step, w);
}

template <class T>
void PixelShuffleCpu::shuffle(const Mat& bottom, Mat& top, const Option& opt) const {
    const ChannelView from(bottom), to(top);
    const int r = upscale_factor, h = bottom.h, w = bottom.w;
    const int threads = threads_for(opt, (double)from.row * from.count);
    const Bands bands(to.count, h, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int) {
        const int q = bands.item(task);
        std::vector<const T*> in(r);
        for (int i = 0; i < r; i++) {
            for (int y = bands.begin(task); y < bands.end(task); y++) {
                for (int j = 0; j < r; j++)
                    in[j] = (const T*)from.at(source_channel(q, i, j, to.count), (size_t)y * w);
                T* out = (T*)to.at(q, ((size_t)y * r + i) * top.w);
                interleave_rows(in.data(), from.pack, r, out, to.pack, w);
            }
        }
    });
}

// From blocks of channels to blocks of channels: the pixels of one place within a square, whose
// channels are gathered together, are spread over the rows.
int PixelShuffleCpu::shuffle_blocks(const Mat& bottom, Mat& top, const Option& opt) const {
    const int r = upscale_factor, channels = top.logical_shape().c, w = bottom.w, h = bottom.h;
    Mat part;
    Shape shape = top.logical_shape();
    shape.w = w, shape.h = h;
    part.create(shape, top.elempack, opt.workspace_allocator);
    if (part.empty()) return kOutOfMemory;
    const size_t es = top.elemsize;
    const int threads = threads_for(opt, (double)w * h * channels);
    for (int i = 0; i < r; i++) {
        for (int j = 0; j < r; j++) {
            Scratch<int> source;
            for (int q = 0; q < channels; q++) source->push_back(source_channel(q, i, j, channels));
            const ChannelGather gather(bottom, part, *source);
            run_tasks(gather.blocks(), threads, [&](int64_t block, int) {
                gather.copy((int)block, 0, 0, (size_t)w * h);
                for (int y = 0; y < h; y++)
                    copy_strided(
                        (const unsigned char*)part.data + (block * part.cstep + (size_t)y * w) * es,
                        es,
                        (unsigned char*)top.data +
                            (block * top.cstep + ((size_t)y * r + i) * top.w + j) * es,
                        r * es, es, w);
            });
        }
    }
    return kOk;
}

void PixelShuffleCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in,
                                   const Option&, std::vector<BlobLayout>* out) const {
    (*out)[0].elempack = pack_within(in[0].elempack, (*out)[0].shape.c);
}

int PixelShuffleCpu::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    const size_t scalar = bottom.elemsize / bottom.elempack;
    top.create(out[0], pack_within(bottom.elempack, out[0].c), opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    if (top.elempack > 1 && bottom.elempack > 1) return shuffle_blocks(bottom, top, opt);
    Mat planar;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, 1, opt, &planar));
    if (scalar == 4)
        shuffle<uint32_t>(planar, top, opt);
    else if (scalar == 2)
        shuffle<uint16_t>(planar, top, opt);
    else
        shuffle<uint8_t>(planar, top, opt);
    return kOk;
}

}  // namespace

Layer* create_PixelShuffle_fast_layer() { return new PixelShuffleCpu; }

}  // namespace quoll
