// Kernels of sums over many values and of what is divided by them: reductions, softmax,
// normalisations. No pointer needs alignment.
#ifndef QUOLL_LAYER_CPU_NORM_NORM_H
#define QUOLL_LAYER_CPU_NORM_NORM_H

#include <stddef.h>

namespace quoll {

// out[j] = f(data[j] - about[j]) joined with f(data[j + period] - about[j]) and so on: the values
// of each lane of a blob with elempack `period`. n > 0 is a multiple of period; a null `about`
// stands for zeros.
typedef void (*NormReduce)(const float* data, size_t n, size_t period, const float* about,
                           float* out);

// Softmax of n > 0 values, in place; they are scaled and mask[i] is added before (null: nothing).
// total: null, or receives the sum of the exponentials, which are then left undivided and rounded
// to bf16, for products that would round them: so the rounding errors of similar values do not add
// up.
typedef void (*SoftmaxRow)(float* data, size_t n, float scale, const float* mask, float* total);
// The logarithm of the softmax.
typedef void (*LogSoftmaxRow)(float* data, size_t n);
// Softmax along an axis of `count` > 0 values `step` floats apart, for `width` neighbours, in
// place.
typedef void (*SoftmaxColumns)(float* data, size_t count, size_t step, size_t width);

// data[i] = (data[i] - mean) / sqrt(variance + eps) * gamma[i] + beta[i] with mean and variance of
// the n > 0 values; a null gamma stands for ones, a null beta for zeros.
typedef void (*NormalizeRow)(float* data, size_t n, float eps, const float* gamma,
                             const float* beta);

// data[i] = clamp((data[i] - mean[c]) * factor[c] + term[c]) for c = i % period, i < n, a multiple
// of period; a null term stands for zeros. The mean is subtracted first: if it were part
// of the term, its rounding error would be multiplied by the factor.
typedef void (*ScaleCentred)(float* data, size_t n, size_t period, const float* mean,
                             const float* factor, const float* term, float low, float high);

// data[i] = data[i] / sqrt(mean of the squares + eps) * gamma[i]; a null gamma stands for ones.
typedef void (*RmsRow)(float* data, size_t n, float eps, const float* gamma);

// Local response normalisation across channels: for each of `pixels` pixels and channel c
//     out = in * (bias + scale * sum of in^2 over the channels c - before to c + after)^-beta.
// Channels come in `blocks` blocks of `pack` (1, 4, 8 or 16), `step` floats apart.
struct LrnAcross {
    const float* in;
    float* out;
    size_t step;
    int blocks, pack, before, after;
    float scale, bias, beta;
    size_t pixels;
    float* scratch;  // lrn_scratch(blocks, pack, before + after) floats where pack > 1
};
typedef void (*LrnKernel)(const LrnAcross& t);

enum { kLrnPixels = 4 };  // squares of so many pixels are kept at a time
// around: before + after of LrnAcross.
inline size_t lrn_scratch(int blocks, int pack, int around) {
    return kLrnPixels * ((size_t)blocks * pack + (size_t)around);
}

struct NormKernels {
#define QUOLL_NORM(name, type, function) type name;
#include "layer/cpu/norm/kernels.inc"
#undef QUOLL_NORM
};

}  // namespace quoll

#endif
