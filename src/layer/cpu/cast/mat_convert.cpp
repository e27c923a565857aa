// Conversions between packings and scalar types: the bodies of convert_packing, flatten, cast_* and
// the int8 conversions of mat.h.
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <memory>

#include "layer/common/conv_window.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/few_kernels.h"
#include "quoll/layer.h"
#include "quoll/log.h"
#include "quoll/mat.h"
#include "runtime/scalar.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// With fewer bytes than this a second thread costs more than it saves.
const size_t kParallelBytes = 64 * 1024;

int threads_for(const Option& opt, size_t bytes) {
    return bytes < kParallelBytes || opt.num_threads < 1 ? 1 : opt.num_threads;
}

// A Mat seen as `blocks` runs of `inner` elements along its outermost axis: rows of a 2-D Mat,
// channels of a 3-D or 4-D one, single elements of a 1-D one.
struct Blocks {
    int blocks;
    size_t inner;
    size_t step;  // bytes from one block to the next

    explicit Blocks(const Mat& m) {
        blocks = m.dims == 1 ? m.w : m.dims == 2 ? m.h : m.c;
        inner = m.dims == 1 ? 1 : m.dims == 2 ? (size_t)m.w : (size_t)m.w * m.h * m.d;
        step = (m.dims < 3 ? inner : m.cstep) * m.elemsize;
    }
};

unsigned char* batch_data(const Mat& m, int b) {
    return (unsigned char*)m.data + b * m.nstep * m.elemsize;
}

// to[i * P + k] = channel k at i, where channel k begins at from[k] and advances by one scalar.
template <class T, int P>
void interleave(const T* from, size_t channel_step, T* __restrict to, size_t inner) {
    const T* channel[P];
    for (int k = 0; k < P; k++) channel[k] = from + k * channel_step;
    for (size_t i = 0; i < inner; i++)
        for (int k = 0; k < P; k++) to[i * P + k] = channel[k][i];
}

// The inverse of interleave. A cache line of each channel at a time: channels whose step is a
// multiple of the page size share few places in the first-level cache.
template <class T, int P>
void deinterleave(const T* __restrict from, T* __restrict to, size_t channel_step, size_t inner) {
    const size_t kTile = 64 / sizeof(T);
    size_t i = 0;
    for (; i + kTile <= inner; i += kTile, from += kTile * P)
        for (int k = 0; k < P; k++)
            for (size_t j = 0; j < kTile; j++) to[k * channel_step + i + j] = from[j * P + k];
    for (int k = 0; k < P; k++)
        for (size_t j = 0; j < inner - i; j++) to[k * channel_step + i + j] = from[j * P + k];
}

// Copies R scalars a position: from[i * from_pack ..] to to[i * to_pack ..].
template <class T, int R = 1>
void copy_channels(const T* __restrict from, int from_pack, T* __restrict to, int to_pack,
                   size_t inner) {
    for (size_t i = 0; i < inner; i++)
        memcpy(to + i * to_pack, from + i * from_pack, R * sizeof(T));
}

template <class T>
struct Repack {
    const T* from;
    T* to;
    int from_pack, to_pack;
    size_t from_step, to_step;  // scalars from one block to the next
    size_t inner;
    int threads;

    // Code for packs of kernels: of bytes and halves where there are kernels of these.
    static constexpr bool kHasFastPacks = sizeof(T) > 2 ||
                                          (sizeof(T) == 2 ? kHasHalfStorage : kHasInt8);

    // Fills block q of the packed destination from planar channels.
    void pack(int q) const {
        const T* src = from + (size_t)q * to_pack * from_step;
        T* dst = to + q * to_step;
        switch (kHasFastPacks ? to_pack : 0) {
            case 4:
                return interleave<T, 4>(src, from_step, dst, inner);
            case 8:
                return interleave<T, 8>(src, from_step, dst, inner);
            case 16:
                return interleave<T, 16>(src, from_step, dst, inner);
        }
        for (int k = 0; k < to_pack; k++)
            copy_channels(src + k * from_step, 1, dst + k, to_pack, inner);
    }

    // Spreads block q of the packed source over planar channels.
    void unpack(int q) const {
        const T* src = from + q * from_step;
        T* dst = to + (size_t)q * from_pack * to_step;
        switch (kHasFastPacks ? from_pack : 0) {
            case 4:
                return deinterleave<T, 4>(src, dst, to_step, inner);
            case 8:
                return deinterleave<T, 8>(src, dst, to_step, inner);
            case 16:
                return deinterleave<T, 16>(src, dst, to_step, inner);
        }
        for (int k = 0; k < from_pack; k++)
            copy_channels(src + k, from_pack, dst + k * to_step, 1, inner);
    }

    // Fills block q of the destination for any other pair of packs, R channels at a time.
    template <int R>
    void mixed(int q) const {
        T* dst = to + q * to_step;
        for (int k = 0; k < to_pack; k += R) {
            const size_t channel = (size_t)q * to_pack + k;
            const T* src = from + channel / from_pack * from_step + channel % from_pack;
            copy_channels<T, R>(src, from_pack, dst + k, to_pack, inner);
        }
    }

    void mixed(int q) const {
        if (kHasFastPacks && from_pack % 8 == 0 && to_pack % 8 == 0)
            mixed<8>(q);
        else if (kHasFastPacks && from_pack % 4 == 0 && to_pack % 4 == 0)
            mixed<4>(q);
        else
            mixed<1>(q);
    }

    void run(int to_blocks) const {
        const bool spread = to_pack == 1 && from_pack > 1;
        const int count = spread ? to_blocks / from_pack : to_blocks;
        parallel_for(count, threads, [&](int64_t q) {
            if (spread)
                unpack(q);
            else if (from_pack == 1)
                pack(q);
            else
                mixed(q);
        });
    }
};

// Rearranges every batch item; `to_step` is the bytes between the blocks of dst, which has
// elempack `to_pack`.
template <class T>
void repack(const Mat& src, Mat& dst, int to_pack, size_t to_step, const Option& opt) {
    const Blocks from(src);
    const int channels = from.blocks * src.elempack;
    const int threads = threads_for(opt, from.inner * channels * sizeof(T));
    for (int b = 0; b < src.n; b++) {
        const Repack<T> job = {(const T*)batch_data(src, b),
                               (T*)batch_data(dst, b),  //
                               src.elempack,
                               to_pack,
                               from.step / sizeof(T),
                               to_step / sizeof(T),
                               from.inner,
                               threads};
        job.run(channels / to_pack);
    }
}

void repack_any(const Mat& src, Mat& dst, int to_pack, size_t to_step, const Option& opt) {
    switch (dtype_size(src.dtype)) {
        case 4:
            return repack<uint32_t>(src, dst, to_pack, to_step, opt);
        case 2:
            return repack<uint16_t>(src, dst, to_pack, to_step, opt);
        default:
            return repack<uint8_t>(src, dst, to_pack, to_step, opt);
    }
}

// False, after a message, when src cannot be read as scalars of its dtype.
bool readable(const Mat& src, const char* function) {
    if (src.empty()) {
        QUOLL_LOGE("[%s] the input is empty", function);
        return false;
    }
    if (src.dims < 1 || src.dims > 4 || src.elempack < 1 ||
        src.elemsize != dtype_size(src.dtype) * src.elempack) {
        QUOLL_LOGE(
            "[%s] expected 1 to 4 axes of whole scalars, got %d axes, elemsize %zu, "
            "elempack %d, %s",
            function, src.dims, src.elemsize, src.elempack, dtype_name(src.dtype));
        return false;
    }
    return true;
}

// True, after a message, where the library is without int8.
bool lacks_int8(const char* function) {
    if (!kHasInt8) QUOLL_LOGE("[%s] int8 is not part of this build (QUOLL_INT8 is off)", function);
    return !kHasInt8;
}

// f(from, to, channel, count) for each run of `count` scalars that lie `pack` channels to a
// position; `channel` is the index on the outermost axis of the first of them. dst has the shape of
// src.
template <class F>
void for_each_block(const Mat& src, Mat& dst, const Option& opt, F f) {
    const Blocks from(src), to(dst);
    const int threads = threads_for(opt, from.inner * from.blocks * src.elemsize);
    const size_t count = from.inner * src.elempack;
    if (src.dims == 1) {  // one run, whose channels advance with the scalars
        for (int b = 0; b < src.n; b++)
            f(batch_data(src, b), batch_data(dst, b), 0, count * from.blocks);
        return;
    }
    for (int b = 0; b < src.n; b++) {
        parallel_for(from.blocks, threads, [&](int64_t q) {
            f(batch_data(src, b) + q * from.step, batch_data(dst, b) + q * to.step,
              q * src.elempack, count);
        });
    }
}

// Whether the scalars of all items lie behind one another.
bool lies_dense(const Mat& m, const Blocks& blocks) {
    const size_t item = blocks.inner * blocks.blocks;
    return blocks.step == blocks.inner * m.elemsize && (m.n == 1 || m.nstep == item);
}

// A conversion of a run of scalars.
typedef void (*ConvertRun)(const void* context, const void* from, void* to, size_t count);

// Converts all runs of src, in one region for all items: batches may have many small ones.
void convert_runs(const Mat& src, Mat& dst, const Option& opt, ConvertRun convert,
                  const void* context) {
    enum { kScalars = 1 << 14 };
    const Blocks from(src), to(dst);
    const size_t count = from.inner * src.elempack * (src.dims == 1 ? from.blocks : 1);
    const int64_t blocks = src.dims == 1 ? 1 : from.blocks;
    const int threads = threads_for(opt, (double)count * blocks * src.n * dtype_size(src.dtype));
    if (!kFewKernels && lies_dense(src, from) && lies_dense(dst, to)) {
        const size_t all = count * blocks * src.n;
        parallel_for((int64_t)((all + kScalars - 1) / kScalars), threads, [&](int64_t i) {
            const size_t first = i * kScalars;
            convert(context, (unsigned char*)src.data + first * dtype_size(src.dtype),
                    (unsigned char*)dst.data + first * dtype_size(dst.dtype),
                    std::min<size_t>(kScalars, all - first));
        });
        return;
    }
    // A task is an item of a batch, or a block of the only item.
    const bool batch = src.n > 1;
    parallel_for(batch ? src.n : blocks, threads, [&](int64_t i) {
        const int64_t first = batch ? 0 : i, last = batch ? blocks : i + 1;
        const unsigned char* const a = batch_data(src, batch ? (int)i : 0);
        unsigned char* const b = batch_data(dst, batch ? (int)i : 0);
        for (int64_t q = first; q < last; q++)
            convert(context, a + q * from.step, b + q * to.step, count);
    });
}

// Gives dst the shape and packing of src in another dtype.
bool create_as(const Mat& src, Mat& dst, DType dtype, const char* function, const Option& opt) {
    Shape shape = src.logical_shape();
    shape.dtype = dtype;
    dst.create(shape, src.elempack, opt.blob_allocator);
    if (dst.empty()) QUOLL_LOGE("[%s] no memory for the output", function);
    return !dst.empty();
}

// True if src has an axis of size 0: dst then has its sizes in the other dtype.
bool convert_without_values(const Mat& src, Mat& dst, DType dtype) {
    if (src.dims == 0 || !src.empty() || src.elempack < 1) return false;
    dst = src;
    dst.dtype = dtype, dst.elemsize = dtype_size(dtype) * src.elempack;
    return true;
}

// convert_all(x, y, count) converts a run of scalars.
template <class From, class To, class ConvertAll>
void cast(const Mat& src, Mat& dst, const char* function, DType from, DType from_too, DType to,
          const Option& opt, ConvertAll convert_all) {
    const Mat in = src;  // dst may be src
    if (convert_without_values(in, dst, to)) return;
    const bool can_read = readable(in, function);
    if (can_read && in.dtype != from && in.dtype != from_too)
        QUOLL_LOGE("[%s] expected %s, got %s", function, dtype_name(from), dtype_name(in.dtype));
    if (!can_read || (in.dtype != from && in.dtype != from_too)) return dst.release();
    if (!create_as(in, dst, to, function, opt)) return;
    const ConvertRun convert = [](const void* context, const void* a, void* b, size_t count) {
        (*(const ConvertAll*)context)((const From*)a, (To*)b, count);
    };
    convert_runs(in, dst, opt, convert, &convert_all);
}

// True when `values` is f32 with one value, or one for each index of the outermost axis of src.
bool matches(const Mat& values, const Mat& src, const char* function, const char* what) {
    const int axis = src.logical_shape().size(0);
    if (values.dtype == DType::f32 && values.elempack == 1 && values.dims == 1 && !values.empty() &&
        (values.w == 1 || values.w == axis))
        return true;
    QUOLL_LOGE("[%s] %s: expected 1 or %d f32 values in one axis, got %d axes, %d %s values",
               function, what, axis, values.dims, values.w, dtype_name(values.dtype));
    return false;
}

// Scalar i has scale and bias number i % kRun.
constexpr size_t kRun = 16;
template <class From, class To, class Convert>
void scale_run(const From* __restrict x, To* __restrict y, size_t count, const float* s,
               const float* o, Convert convert) {
    size_t i = 0;
    for (; i + kRun <= count; i += kRun)
        for (size_t k = 0; k < kRun; k++) y[i + k] = convert(x[i + k], s[k], o[k]);
    for (size_t k = 0; i < count; i++, k++) y[i] = convert(x[i], s[k], o[k]);
}

// For channels in blocks of `pack`; 0: one after the other. Not inlined, since each thread's part
// of the loop would have its own copy.
template <class From, class To, class Convert>
__attribute__((noinline)) void scale_block(const From* x, To* y, size_t count, size_t pack,
                                           const float* s, size_t s_step, const float* o,
                                           size_t o_step, Convert convert) {
    const size_t channels = std::max<size_t>(1, pack ? pack : count);  // in turn
    if (s_step + o_step == 0 || kRun % channels == 0) {
        float run_s[kRun], run_o[kRun];
        for (size_t k = 0; k < kRun; k++)
            run_s[k] = s[k % channels * s_step], run_o[k] = o[k % channels * o_step];
        return scale_run(x, y, count, run_s, run_o, convert);
    }
    for (size_t i = 0; i < count; i += channels)
        for (size_t k = 0; k < channels; k++)
            y[i + k] = convert(x[i + k], s[k * s_step], o[k * o_step]);
}

// convert(x, scale, bias) on each scalar. `bias` may be null.
template <class From, class To, class Convert>
void scale_cast(const Mat& src, Mat& dst, const Mat& scale, const Mat* bias, const Option& opt,
                Convert convert) {
    const float none = 0.f, *scales = scale, *biases = bias ? (const float*)*bias : &none;
    const size_t s_step = scale.w > 1, o_step = bias && bias->w > 1;
    const size_t pack = src.dims == 1 ? 0 : src.elempack;
    for_each_block(src, dst, opt, [&](const void* a, void* b, int channel, size_t count) {
        scale_block((const From*)a, (To*)b, count, pack, scales + channel * s_step, s_step,
                    biases + channel * o_step, o_step, convert);
    });
}

}  // namespace

void convert_packing(const Mat& src, Mat& dst, int elempack, const Option& opt) {
    const Mat in = src;  // dst may be src
    dst.release();
    if (elempack < 1) {
        QUOLL_LOGE("[convert_packing] elempack: expected at least 1, got %d", elempack);
        return;
    }
    if (in.elempack == elempack && convert_without_values(in, dst, in.dtype)) return;
    if (!readable(in, "convert_packing")) return;
    const Shape shape = in.logical_shape();
    if (in.elempack == elempack || shape.size(0) % elempack != 0) {
        dst = in;
        return;
    }
    if (in.dims == 1 && in.n == 1) {  // the scalars already lie in order
        dst = in;
        dst.w = shape.w / elempack;
        dst.elempack = elempack, dst.elemsize = dtype_size(in.dtype) * elempack;
        dst.cstep = dst.nstep = dst.w;
        return;
    }
    dst.create(shape, elempack, opt.blob_allocator);
    if (dst.empty()) {
        QUOLL_LOGE("[convert_packing] no memory for the output");
        return;
    }
    repack_any(in, dst, elempack, Blocks(dst).step, opt);
}

void flatten(const Mat& src, Mat& dst, const Option& opt) {
    const Mat in = src;  // dst may be src
    dst.release();
    if (!readable(in, "flatten")) return;
    const Shape shape = in.logical_shape();
    const size_t count = shape.total() / shape.n;
    if (count > INT32_MAX) {
        QUOLL_LOGE("[flatten] expected at most 2^31 - 1 values, got %zu", count);
        return;
    }
    if (in.dims == 1) return convert_packing(in, dst, 1, opt);
    if (in.elempack == 1) {
        dst = in.reshape((int)count, opt.blob_allocator);
    } else {
        Shape flat((int)count, in.dtype);
        flat.n = in.n;
        dst.create(flat, 1, opt.blob_allocator);
        if (!dst.empty()) repack_any(in, dst, 1, Blocks(in).inner * dtype_size(in.dtype), opt);
    }
    if (dst.empty()) QUOLL_LOGE("[flatten] no memory for the output");
}

void cast_float32_to_float16(const Mat& src, Mat& dst, const Option& opt) {
    cast<float, unsigned short>(src, dst, "cast_float32_to_float16", DType::f32, DType::f32,
                                DType::f16, opt, host_kernel_set().cast->f16.narrow);
}

void cast_float16_to_float32(const Mat& src, Mat& dst, const Option& opt) {
    // Programs written for ncnn read every Mat of two bytes so: the Mat knows better.
    if (src.dtype == DType::bf16) return cast_bfloat16_to_float32(src, dst, opt);
    cast<unsigned short, float>(src, dst, "cast_float16_to_float32", DType::f16, DType::f16,
                                DType::f32, opt, host_kernel_set().cast->f16.widen);
}

void cast_float32_to_bfloat16(const Mat& src, Mat& dst, const Option& opt) {
    cast<float, unsigned short>(src, dst, "cast_float32_to_bfloat16", DType::f32, DType::f32,
                                DType::bf16, opt, host_kernel_set().cast->bf16.narrow);
}

void cast_bfloat16_to_float32(const Mat& src, Mat& dst, const Option& opt) {
    cast<unsigned short, float>(src, dst, "cast_bfloat16_to_float32", DType::bf16, DType::f16,
                                DType::f32, opt, host_kernel_set().cast->bf16.widen);
}

void cast_int8_to_float32(const Mat& src, Mat& dst, const Option& opt) {
    cast<signed char, float>(src, dst, "cast_int8_to_float32", DType::s8, DType::s8, DType::f32,
                             opt, [](const signed char* x, float* y, size_t count) {
                                 for (size_t i = 0; i < count; i++) y[i] = (float)x[i];
                             });
}

void quantize_to_int8(const Mat& src, Mat& dst, const Mat& scale_data, const Option& opt) {
    static const char* const kName = "quantize_to_int8";
    const Mat in = src;  // dst may be src
    dst.release();
    if (lacks_int8(kName) || !readable(in, kName)) return;
    if (in.dtype != DType::f32) {
        QUOLL_LOGE("[%s] expected f32, got %s", kName, dtype_name(in.dtype));
        return;
    }
    if (!matches(scale_data, in, kName, "scale_data")) return;
    if (!create_as(in, dst, DType::s8, kName, opt)) return;
    scale_cast<float, signed char>(in, dst, scale_data, nullptr, opt,
                                   [](float v, float s, float) { return int8_from_float(v * s); });
}

void dequantize_from_int32(const Mat& src, Mat& dst, const Mat& scale_data, const Mat& bias_data,
                           const Option& opt) {
    static const char* const kName = "dequantize_from_int32";
    const Mat in = src;  // dst may be src
    dst.release();
    if (lacks_int8(kName) || !readable(in, kName)) return;
    if (in.dtype != DType::s32 && in.dtype != DType::f32) {
        QUOLL_LOGE("[%s] expected s32, got %s", kName, dtype_name(in.dtype));
        return;
    }
    const Mat* bias = bias_data.empty() ? nullptr : &bias_data;
    if (!matches(scale_data, in, kName, "scale_data")) return;
    if (bias && !matches(*bias, in, kName, "bias_data")) return;
    if (!create_as(in, dst, DType::f32, kName, opt)) return;
    scale_cast<int, float>(in, dst, scale_data, bias, opt,
                           [](int v, float s, float o) { return (float)v * s + o; });
}

void requantize_from_int32_to_int8(const Mat& src, Mat& dst, const Mat& scale_in_data,
                                   const Mat& scale_out_data, const Mat& bias_data,
                                   int activation_type, const Mat& activation_params,
                                   const Option& opt) {
    const Mat in = src;  // dst may be src
    dst.release();
    if (lacks_int8("requantize_from_int32_to_int8")) return;
    const std::unique_ptr<Layer> layer(create_layer("Requantize"));
    if (!layer) {
        QUOLL_LOGE("[requantize_from_int32_to_int8] this build lacks the operator Requantize");
        return;
    }
    ParamDict pd;
    pd.set(0, scale_in_data.w);
    pd.set(1, scale_out_data.w);
    pd.set(2, bias_data.w);
    pd.set(3, activation_type);
    if (!activation_params.empty()) pd.set(4, activation_params);
    const Mat weights[] = {scale_in_data, scale_out_data, bias_data};
    if (layer->load_param(pd) == kOk && layer->load_model(ModelBinFromMatArray(weights)) == kOk &&
        layer->create_pipeline(opt) == kOk && layer->forward(in, dst, opt) != kOk)
        dst.release();
}

}  // namespace quoll
