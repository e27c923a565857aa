// What the processor and the operating system can run, as a bit set; kernels are picked by it.
//
// QUOLL_CPU_MASK=<level> in the environment caps what the library sees, and set_cpu_mask() does so
// from code: "nothing above this level". One machine then tests every lower one. The levels, in any
// case of letters:
//   x86      scalar sse4 avx2 avxvnni avx512 avx512vnni avx512bf16 avx512fp16 amx
//   aarch64  scalar neon asimdhp asimddp i8mm=bf16 sve sve2 sme
//   wasm     scalar simd128
//   riscv64  scalar rvv
// Each contains the one before it, except that avx512 is without avxvnni's AVX-VNNI (no processor
// has only these two), which returns with avx512vnni.
// A mask may also be a list, separated by commas, of levels and features (cpu_feature_name): what
// any of its words names is allowed, and -NAME takes a feature away again. A list that begins with
// such a word begins with everything: "avx512,amx_tile,amx_int8", "-amx_bf16". Where a level and a
// feature have one name (sve2), the plain word is the level.
#ifndef QUOLL_CPU_FEATURES_H
#define QUOLL_CPU_FEATURES_H

#include <stdint.h>

// The names are those of /proc/cpuinfo, except lzcnt (there: abm), neon (asimd), sse3 (pni), rvv
// (v).
// clang-format off
#define QUOLL_CPU_FEATURES(X)                                            \
    X(sse3) X(ssse3) X(sse4_1) X(sse4_2) X(popcnt)                       \
    X(avx) X(f16c) X(fma) X(avx2) X(bmi1) X(bmi2) X(lzcnt) X(movbe)      \
    X(avx_vnni) X(avx_vnni_int8) X(avx_vnni_int16) X(avx_ne_convert)     \
    X(avx512f) X(avx512bw) X(avx512dq) X(avx512vl) X(avx512cd)           \
    X(avx512_vnni) X(avx512_bf16) X(avx512_fp16)                         \
    X(amx_tile) X(amx_int8) X(amx_bf16)                                  \
    X(neon) X(asimdhp) X(asimddp) X(asimdfhm) X(i8mm) X(bf16)            \
    X(sve) X(svei8mm) X(svebf16) X(svef32mm) X(sve2) X(sme)              \
    X(simd128) X(rvv)
// clang-format on

namespace quoll {

enum class CpuFeature {
#define QUOLL_CPU_FEATURE_ENUMERATOR(name) name,
    QUOLL_CPU_FEATURES(QUOLL_CPU_FEATURE_ENUMERATOR)
#undef QUOLL_CPU_FEATURE_ENUMERATOR
        count
};

// The feature's name as in QUOLL_CPU_FEATURES; "?" for a value outside the enumeration.
const char* cpu_feature_name(CpuFeature feature);

struct CpuFeatures {
    uint64_t bits;  // bit i: the feature whose enumerator has the value i

    CpuFeatures() : bits(0) {}
    explicit CpuFeatures(uint64_t b) : bits(b) {}
    bool has(CpuFeature feature) const { return (bits >> int(feature) & 1) != 0; }
    bool has_all(const CpuFeatures& set) const { return (bits & set.bits) == set.bits; }
};

// Usable features of this machine: present in the processor and enabled by the operating system.
// On Linux the first call asks the kernel for permission to use AMX tiles.
const CpuFeatures& detected_cpu_features();

// The detected features below both caps, that of the environment and that of set_cpu_mask: what
// kernels are to be picked by. The referenced value never changes; ask again after set_cpu_mask.
const CpuFeatures& host_cpu_features();

// Caps host_cpu_features() for whatever is created afterwards, in addition to QUOLL_CPU_MASK. Null
// or "" removes this cap. Returns 0, or -1 for an unknown word after a warning that lists the
// levels; the previous cap then stays.
int set_cpu_mask(const char* mask);

// Removes from *features what `mask` does not allow. Null or "" removes nothing. Returns 0,
// or -1 as above, with *features unchanged.
int cap_cpu_features(const char* mask, CpuFeatures* features);

// The vector level that tables of kernels are picked by. sse4 is x86-64-v2; avx2 adds AVX2, FMA,
// F16C and the rest of x86-64-v3; avx512 adds F, BW, DQ, VL, CD (x86-64-v4).
#define QUOLL_VECTOR_ISAS(X) X(scalar) X(sse4) X(avx2) X(avx512) X(neon) X(simd128) X(rvv)
enum class Isa {
#define QUOLL_ISA_ENUMERATOR(name) name,
    QUOLL_VECTOR_ISAS(QUOLL_ISA_ENUMERATOR)
#undef QUOLL_ISA_ENUMERATOR
};

// What all kernels of the level need.
CpuFeatures isa_features(Isa isa);
// The highest level whose features are all there.
Isa best_isa(const CpuFeatures& features);
const char* isa_name(Isa isa);

}  // namespace quoll

#endif  // QUOLL_CPU_FEATURES_H
