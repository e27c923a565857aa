#include "layer/cpu/gemm/fixed_gemm.h"

#include <math.h>

#include <algorithm>
#include <atomic>

#include "cpu_features.h"

namespace quoll {

#if defined(QUOLL_AMX)
extern const FixedGemmKernels gemm_fixed_32x16_amx;
#endif

namespace {

std::atomic<const FixedGemmKernels*> g_override{nullptr};

}  // namespace

double FixedSpread::ratio() const { return squares > 0 ? peak * sqrt(count / squares) : 0; }

void FixedSpread::add(const FixedSpread& other) {
    peak = std::max(peak, other.peak);
    squares += other.squares;
    count += other.count;
    finite = finite && other.finite;
}

void FixedSpread::widen(const FixedSpread& other) {
    const bool all_finite = finite && other.finite;
    if (other.ratio() > ratio()) *this = other;
    finite = all_finite;
}

void override_fixed_gemm_kernels(const FixedGemmKernels* kernels) { g_override.store(kernels); }

const FixedGemmKernels* fixed_gemm_kernels() {
    if (const FixedGemmKernels* replaced = g_override.load()) return replaced;
#if defined(QUOLL_AMX)
    const CpuFeatures& features = host_cpu_features();
    if (best_isa(features) == Isa::avx512 && features.has(CpuFeature::avx512_bf16) &&
        features.has(CpuFeature::avx512_vnni) && features.has(CpuFeature::amx_tile) &&
        features.has(CpuFeature::amx_int8))
        return &gemm_fixed_32x16_amx;
#endif
    return nullptr;
}

}  // namespace quoll
