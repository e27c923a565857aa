// Products of planar blobs, in which vectors hold neighbouring pixels: 1x1 convolutions.
#ifndef QUOLL_LAYER_CPU_GEMM_PLANAR_PRODUCT_H
#define QUOLL_LAYER_CPU_GEMM_PLANAR_PRODUCT_H

#include "layer/cpu/gemm/gemm.h"
#include "layer/cpu/unary/fused_activation.h"

namespace quoll {

// Values have the type of gemm->planar: fp32, or half floats. Steps are in values.
struct PlanarProduct {
    const GemmKernels* gemm;    // whose planar kernels run
    const GemmKernels* panels;  // by which the weights were packed
    size_t pixels, in_channels, out_channels;
    size_t in_step, out_step;  // from channel to channel, or from block to block
    // Elempacks: one of them is 1, the other may be more if planar_takes_blocks. Blocks need as
    // many pixels as a tile has.
    size_t in_pack = 1, out_pack = 1;
};

inline bool has_planar(const GemmKernels& gemm) { return gemm.planar[0] && gemm.planar[1]; }

// Whether a product may read blocks of so many channels, or write them. Not where they are as long
// as short registers: tiles of blocks are no slower there.
inline bool planar_takes_blocks(const GemmKernels& gemm) {
    return gemm.halves == 2 && gemm.lanes >= 8;
}
inline bool planar_reads_blocks(const GemmKernels& gemm, int pack) {
    return planar_takes_blocks(gemm) && pack % gemm.lanes == 0;
}

// The pixels of a tile of floats.
inline size_t planar_pixels(const GemmKernels& gemm) { return (size_t)kPlanarVectors * gemm.lanes; }

// The pixels of a tile of half floats: kPlanarHalfPixels, or as many more as vectors are longer
// (wide_gemm.h).
inline size_t planar_half_pixels(const GemmKernels& gemm) {
    return (size_t)kPlanarHalfPixels * gemm.step / gemm.lanes;
}

// bias: gemm_bias_size values, zero where there is none. Nothing beyond the pixels is read or
// written.
void run_planar(const PlanarProduct& product, const void* in, const void* weights, const void* bias,
                void* out, const FusedActivation& activation, int threads);

}  // namespace quoll

#endif
