// The elementwise operators on int8 values with zero points.
#include <math.h>
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
    AffineQuantizeCpu() { support_batch = true; }

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
    AffineDequantizeCpu() { support_batch = true; }

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
    AffineTableCpu() { support_batch = true; }

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

// The fixed-point form of t, a sum, whose start is off by `shifted` 2^19ths of a step. False if the
// factors are too large.
bool fixed_sum(const Int8Affine& t, int shifted, Int8FixedSum* f) {
    enum { kLowBits = 14, kLow = 1 << kLowBits };
    const double a = (double)t.scale_a * t.top_scale, b = (double)t.scale_b * t.top_scale;
    int bits = kLowBits;
    const auto fits = [&] {  // sums in 32 bits, and factors in 16
        return 255 * (a + b) + 129 < (double)(1 << (23 - bits)) &&
               a < (double)(1 << (15 - bits)) - 1e-3 && b < (double)(1 << (15 - bits)) - 1e-3;
    };
    while (bits > 8 && !fits()) bits--;
    if (!fits()) return false;
    const double one = (double)((int64_t)1 << (bits + kLowBits));
    const int64_t factors[] = {llround(a * one), llround(b * one)};
    const auto low = [](int64_t x) { return (int)((x + kLow / 2) & (kLow - 1)) - kLow / 2; };
    const auto both = [](int64_t x, int64_t y) {
        return (int32_t)((uint32_t)(uint16_t)x | (uint32_t)(uint16_t)y << 16);
    };
    f->shift = 8 + bits;
    f->low_factors = both(low(factors[0]), low(factors[1]));
    f->high_factors = both((factors[0] - low(factors[0])) >> kLowBits,
                           (factors[1] - low(factors[1])) >> kLowBits);
    const int64_t half = (int64_t)1 << (f->shift + kLowBits - 1);
    const int64_t start = (2 * t.top_zero + 1) * half -
                          (t.zero_a * factors[0] + t.zero_b * factors[1]) * 256 +
                          shifted * (half >> 18);
    f->low_start = (int32_t)(start & (kLow - 1));
    f->high_start = (int32_t)(start >> kLowBits);
    return true;
}

// Whether f gives what t gives in f32, for all values.
bool gives_the_same(const Int8Kernels& kernels, Int8Affine t, const Int8FixedSum& f) {
    enum { kValues = AffineTable::kValues };
    int8_t a[kValues], b[kValues], want[kValues], got[kValues];
    t.a = a, t.b = b, t.n = kValues;
    for (int i = 0; i < kValues; i++) a[i] = (int8_t)(i - kValues / 2);
    for (int i = 0; i < kValues; i++) {
        memset(b, i - kValues / 2, kValues);
        t.fixed = nullptr, t.out = want;
        kernels.affine(t);
        t.fixed = &f, t.out = got;
        kernels.affine(t);
        if (memcmp(want, got, kValues) != 0) return false;
    }
    return true;
}

// Where f32 rounds a sum close to the middle of two steps to the other side, a start that is a bit
// off mostly does, too.
bool find_fixed_sum(const Int8Kernels& kernels, const Int8Affine& t, Int8FixedSum* f) {
    for (int i = 0; i < 16; i++) {
        if (!fixed_sum(t, i % 2 ? (i + 1) / 2 : -i / 2, f)) return false;
        if (gives_the_same(kernels, t, *f)) return true;
    }
    return false;
}

class AffineBinaryCpu : public AffineBinary {
public:
    AffineBinaryCpu() : AffineBinary(true) { support_packing = true; }

    int create_pipeline(const Option& opt) override {
        QUOLL_RETURN_IF_ERROR(AffineBinary::create_pipeline(opt));
        activation_ =
            FusedActivation(host_kernel_set(), Activation(activation_type, activation_params));
        if constexpr (kHasInt8FixedSums)
            is_fixed_ = op_type == 0 && !activation_.pass && bottoms.size() == 2 &&
                        find_fixed_sum(*host_kernel_set().int8, task(0), &fixed_);
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
        Int8Affine all = task(0);
        if (is_fixed_ && !b.empty()) all.fixed = &fixed_;
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
    Int8FixedSum fixed_;
    bool is_fixed_ = false;
};

}  // namespace

Layer* create_AffineQuantize_fast_layer() { return new AffineQuantizeCpu; }
Layer* create_AffineDequantize_fast_layer() { return new AffineDequantizeCpu; }
Layer* create_AffineTable_fast_layer() { return new AffineTableCpu; }
Layer* create_AffineBinary_fast_layer() { return new AffineBinaryCpu; }

}  // namespace quoll
