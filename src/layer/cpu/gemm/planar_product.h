// Products of planar blobs, neighbouring pixels of which are the rows of vectors: 1x1 convolutions.
#ifndef QUOLL_LAYER_CPU_GEMM_PLANAR_PRODUCT_H
#define QUOLL_LAYER_CPU_GEMM_PLANAR_PRODUCT_H

#include "layer/cpu/gemm/gemm.h"
#include "layer/cpu/unary/fused_activation.h"

namespace quoll {

// Values are those of gemm->planar: fp32, or half floats. Steps are in values.
struct PlanarProduct {
    const GemmKernels* gemm;    // whose planar kernels run
    const GemmKernels* panels;  // by which the weights were packed
    size_t pixels, in_channels, out_channels;
    size_t in_step, out_step;  // from channel to channel
};

inline bool has_planar(const GemmKernels& gemm) { return gemm.planar[0] && gemm.planar[1]; }

// Half floats of a tile: kPlanarHalfPixels, or on longer vectors (wide_gemm.h) as many more.
inline size_t planar_half_pixels(const GemmKernels& gemm) {
    return (size_t)kPlanarHalfPixels * gemm.step / gemm.lanes;
}

// bias: gemm_bias_size values, zero where there is none. Nothing beyond the pixels is read or
// written.
void run_planar(const PlanarProduct& product, const void* in, const void* weights, const void* bias,
                void* out, const FusedActivation& activation, int threads);

}  // namespace quoll

#endif
