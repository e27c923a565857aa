// The elementwise operators on int8 values with zero points.
#include <string.h>

#include "layer/common/activation.h"
#include "layer/cpu/common/chunks.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/unary/fused_activation.h"
#include "layer/quantize/affine.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// A blob of another type, with the elempack of `like`, as `layer` infers it.
int create_as(const Layer& layer, const Mat& like, Mat* top, const Option& opt) {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(layer.infer_shapes({like.logical_shape()}, out));
    top->create(out[0], like.elempack, opt.blob_allocator);
    return top->empty() ? (int)kOutOfMemory : (int)kOk;
}

class AffineQuantizeCpu : public AffineQuantize {
public:
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override {
        QUOLL_RETURN_IF_ERROR(create_as(*this, bottom, &top, opt));
        const Int8Kernels& kernels = *host_kernel_set().int8;
        const Chunks chunks(bottom, top);
        const int threads = threads_for(opt, (double)bottom.total() * bottom.elempack);
        parallel_for(chunks.count(), threads, [&](int64_t i) {
            const Chunk p = chunks[i];
            kernels.to_affine(p.of(bottom), p.count, scale, zero_point, p.of<int8_t>(top));
        });
        return kOk;
    }
};

class AffineDequantizeCpu : public AffineDequantize {
public:
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override {
        QUOLL_RETURN_IF_ERROR(create_as(*this, bottom, &top, opt));
        const Int8Kernels& kernels = *host_kernel_set().int8;
        const Chunks chunks(bottom, top);
        const int threads = threads_for(opt, (double)bottom.total() * bottom.elempack);
        parallel_for(chunks.count(), threads, [&](int64_t i) {
            const Chunk p = chunks[i];
            kernels.from_affine(p.of<int8_t>(bottom), p.count, scale, zero_point, p.of(top));
        });
        return kOk;
    }
};

class AffineTableCpu : public AffineTable {
public:
    int create_pipeline(const Option&) override {
        for (int i = 0; i < kValues; i++) bytes_[i] = value((signed char)(i - kValues / 2));
        return kOk;
    }

    int forward(const Mat& bottom, Mat& top, const Option& opt) const override {
        QUOLL_RETURN_IF_ERROR(create_as(*this, bottom, &top, opt));
        const Int8Kernels& kernels = *host_kernel_set().int8;
        const Chunks chunks(top, gapless(bottom) && gapless(top));
        const int threads = threads_for(opt, (double)bottom.total() * bottom.elempack / 4);
        parallel_for(chunks.count(), threads, [&](int64_t i) {
            const Chunk p = chunks[i];
            kernels.look_up(p.of<int8_t>(bottom), p.count, bytes_, p.of<int8_t>(top));
        });
        return kOk;
    }

private:
    int8_t bytes_[kValues];
};

// `lanes` values again and again, n in all.
void spread_lanes(const int8_t* values, size_t lanes, size_t n, int8_t* out) {
    if (lanes == 1) {
        memset(out, values[0], n);
        return;
    }
    for (size_t i = 0; i < n; i += lanes) memcpy(out + i, values, lanes);
}

class AffineBinaryCpu : public AffineBinary {
public:
    AffineBinaryCpu() : AffineBinary(true) { support_packing = true; }

    int create_pipeline(const Option& opt) override {
        QUOLL_RETURN_IF_ERROR(AffineBinary::create_pipeline(opt));
        activation_ =
            FusedActivation(host_kernel_set(), Activation(activation_type, activation_params));
        return kOk;
    }

    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override {
        std::vector<Shape> in = shapes_of(bottoms), out;
        QUOLL_RETURN_IF_ERROR(infer_shapes(in, out));
        tops.resize(1);
        if (activation_.pass) return forward_f32(bottoms, &tops[0], opt);
        if (in.size() == 2 && !(in[0] == in[1])) {
            if (by_channel(in[0], in[1])) return forward_channels(bottoms, 0, out[0], tops[0], opt);
            if (by_channel(in[1], in[0])) return forward_channels(bottoms, 1, out[0], tops[0], opt);
            return forward_f32(bottoms, &tops[0], opt);
        }
        const Mat& a = bottoms[0];
        Mat b;
        if (in.size() == 2) QUOLL_RETURN_IF_ERROR(with_elempack(bottoms[1], a.elempack, opt, &b));
        Mat& top = tops[0];
        top.create(out[0], a.elempack, opt.blob_allocator);
        if (top.empty()) return kOutOfMemory;
        const Int8Affine all = task(0);
        const Chunks chunks(top, gapless(a) && gapless(top) && (b.empty() || gapless(b)));
        const int threads = threads_for(opt, (double)top.total() * top.elempack);
        parallel_for(chunks.count(), threads, [&](int64_t i) {
            const Chunk p = chunks[i];
            Int8Affine part = all;
            part.a = p.of<int8_t>(a), part.b = b.empty() ? nullptr : p.of<int8_t>(b);
            part.n = p.count;
            part.out = p.of<int8_t>(top);
            host_kernel_set().int8->affine(part);
        });
        return kOk;
    }

private:
    // One value of `few` for each channel of `all`: the gates of squeeze-and-excitation.
    static bool by_channel(const Shape& all, const Shape& few) {
        return all.dims >= 3 && few.dims == all.dims && few.c == all.c && few.n == all.n &&
               few.w * few.h * few.d == 1;
    }

    // Input `first` as the kernel's a.
    Int8Affine task(int first) const {
        Int8Affine t = {};
        t.multiply = op_type == 1;
        t.zero_a = first ? b_zero_point : a_zero_point, t.scale_a = first ? b_scale : a_scale;
        t.zero_b = first ? a_zero_point : b_zero_point, t.scale_b = first ? a_scale : b_scale;
        t.top_zero = top_zero_point, t.top_scale = 1.f / top_scale;
        t.low = activation_.low, t.high = activation_.high;
        return t;
    }

    // bottoms[large] has the output's shape, the other one a value for each of its channels.
    int forward_channels(const std::vector<Mat>& bottoms, int large, const Shape& out, Mat& top,
                         const Option& opt) const {
        // The net expects the layout of the first input.
        const int pack = bottoms[0].elempack;
        Mat a, few;
        QUOLL_RETURN_IF_ERROR(with_elempack(bottoms[large], pack, opt, &a));
        QUOLL_RETURN_IF_ERROR(with_elempack(bottoms[1 - large], pack, opt, &few));
        top.create(out, pack, opt.blob_allocator);
        if (top.empty()) return kOutOfMemory;
        const Int8Affine all = task(large);
        const Chunks chunks(top, false);
        const int threads = threads_for(opt, (double)top.total() * top.elempack);
        parallel_for(chunks.count(), threads, [&](int64_t i) {
            const Chunk p = chunks[i];
            const int8_t* values = Chunk{p.batch, p.channel, 0, 0}.of<int8_t>(few);
            int8_t spread[Chunks::kChunk];
            spread_lanes(values, pack, p.count, spread);
            Int8Affine part = all;
            part.a = p.of<int8_t>(a), part.b = spread;
            part.n = p.count;
            part.out = p.of<int8_t>(top);
            host_kernel_set().int8->affine(part);
        });
        return kOk;
    }

    FusedActivation activation_;
};

}  // namespace

Layer* create_AffineQuantize_fast_layer() { return new AffineQuantizeCpu; }
Layer* create_AffineDequantize_fast_layer() { return new AffineDequantizeCpu; }
Layer* create_AffineTable_fast_layer() { return new AffineTableCpu; }
Layer* create_AffineBinary_fast_layer() { return new AffineBinaryCpu; }

}  // namespace quoll
