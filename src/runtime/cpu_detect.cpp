#include "runtime/cpu_detect.h"

#include <string.h>

#include "quoll/cpu.h"
#include "runtime/midr.h"

#if defined(__x86_64__) || defined(__i386__)
#define QUOLL_X86 1
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if (defined(__aarch64__) || defined(__arm__) || defined(__riscv)) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__) && defined(_WIN32)
#include <windows.h>
#endif

namespace quoll {
namespace {

using F = CpuFeature;

template <typename... Features>
constexpr uint64_t bits_of(Features... features) {
    return ((uint64_t(1) << int(features)) | ... | 0);
}

#if defined(QUOLL_X86)

enum Register { kEax, kEbx, kEcx, kEdx };

// Register state that the operating system must save for a feature: bits of XCR0 (Intel SDM
// vol. 1, 13.1): 1 SSE, 2 AVX, 5..7 AVX-512, 17..18 AMX.
enum : uint32_t { kStateNone = 0, kStateAvx = 0x6, kStateAvx512 = 0xe6, kStateAmx = 0x60006 };

// The CPUID bits of features (Intel SDM vol. 2, CPUID; AMD APM vol. 3 for 0x80000001); grouped by
// leaf, because reading one takes microseconds in a virtual machine.
struct CpuidBit {
    F feature;
    uint32_t leaf, subleaf;
    Register reg;
    int bit;
    uint32_t state;
};
constexpr CpuidBit kCpuidBits[] = {
    {F::sse3, 1, 0, kEcx, 0, kStateNone},
    {F::ssse3, 1, 0, kEcx, 9, kStateNone},
    {F::sse4_1, 1, 0, kEcx, 19, kStateNone},
    {F::sse4_2, 1, 0, kEcx, 20, kStateNone},
    {F::popcnt, 1, 0, kEcx, 23, kStateNone},
    {F::movbe, 1, 0, kEcx, 22, kStateNone},
    {F::avx, 1, 0, kEcx, 28, kStateAvx},
    {F::f16c, 1, 0, kEcx, 29, kStateAvx},
    {F::fma, 1, 0, kEcx, 12, kStateAvx},
    {F::bmi1, 7, 0, kEbx, 3, kStateNone},
    {F::bmi2, 7, 0, kEbx, 8, kStateNone},
    {F::avx2, 7, 0, kEbx, 5, kStateAvx},
    {F::avx512f, 7, 0, kEbx, 16, kStateAvx512},
    {F::avx512dq, 7, 0, kEbx, 17, kStateAvx512},
    {F::avx512cd, 7, 0, kEbx, 28, kStateAvx512},
    {F::avx512bw, 7, 0, kEbx, 30, kStateAvx512},
    {F::avx512vl, 7, 0, kEbx, 31, kStateAvx512},
    {F::avx512_vnni, 7, 0, kEcx, 11, kStateAvx512},
    {F::avx512_fp16, 7, 0, kEdx, 23, kStateAvx512},
    {F::amx_tile, 7, 0, kEdx, 24, kStateAmx},
    {F::amx_int8, 7, 0, kEdx, 25, kStateAmx},
    {F::amx_bf16, 7, 0, kEdx, 22, kStateAmx},
    {F::avx_vnni, 7, 1, kEax, 4, kStateAvx},
    {F::avx_vnni_int8, 7, 1, kEdx, 4, kStateAvx},
    {F::avx_vnni_int16, 7, 1, kEdx, 10, kStateAvx},
    {F::avx_ne_convert, 7, 1, kEdx, 5, kStateAvx},
    {F::avx512_bf16, 7, 1, kEax, 5, kStateAvx512},
    {F::lzcnt, 0x80000001, 0, kEcx, 5, kStateNone},
};

// Reads one leaf; all zeros when the processor does not have it.
void read_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]) {
    regs[kEax] = regs[kEbx] = regs[kEcx] = regs[kEdx] = 0;
    // Subleaf 0 of leaf 7 tells the highest subleaf; asking beyond it gives other leaves' data.
    if (leaf == 7 && subleaf > 0) {
        read_cpuid(7, 0, regs);
        const uint32_t last = regs[kEax];
        regs[kEax] = regs[kEbx] = regs[kEcx] = regs[kEdx] = 0;
        if (subleaf > last) return;
    }
    __get_cpuid_count(leaf, subleaf, &regs[kEax], &regs[kEbx], &regs[kEcx], &regs[kEdx]);
}

// Of the rows of cpu_cores.inc.
bool is_model(const char* vendor, int family, int model) {
    uint32_t regs[4];
    read_cpuid(0, 0, regs);
    const uint32_t name[] = {regs[kEbx], regs[kEdx], regs[kEcx]};
    if (strlen(vendor) != sizeof(name) || memcmp(vendor, name, sizeof(name)) != 0) return false;
    read_cpuid(1, 0, regs);
    const int base = int(regs[kEax] >> 8 & 15), low = int(regs[kEax] >> 4 & 15);
    const int high = base == 6 || base == 15 ? int(regs[kEax] >> 16 & 15) : 0;
    const int extended = base == 15 ? int(regs[kEax] >> 20 & 255) : 0;
    return family == base + extended && (model < 0 || model == high * 16 + low);
}

// State components that the operating system has enabled (XCR0), 0 without OSXSAVE.
uint32_t enabled_state() {
    uint32_t regs[4];
    read_cpuid(1, 0, regs);
    if (!(regs[kEcx] >> 27 & 1)) return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// Linux hands out the 8 KiB of tile state only on request (Documentation/arch/x86/xstate.rst):
// ARCH_REQ_XCOMP_PERM for XFEATURE_XTILEDATA.
bool request_amx() {
#if defined(__linux__) && defined(__x86_64__)
    constexpr int kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18;
    return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
#else
    return false;
#endif
}

CpuFeatures read_features() {
    const uint32_t state = enabled_state();
    CpuFeatures found;
    const CpuidBit* last = nullptr;
    uint32_t regs[4];
    for (const CpuidBit& entry : kCpuidBits) {
        if (!last || last->leaf != entry.leaf || last->subleaf != entry.subleaf)
            read_cpuid(entry.leaf, entry.subleaf, regs);
        last = &entry;
        if ((regs[entry.reg] >> entry.bit & 1) && (state & entry.state) == entry.state)
            found.bits |= bits_of(entry.feature);
    }
    if (found.has(F::amx_tile) && !request_amx())
        found.bits &= ~bits_of(F::amx_tile, F::amx_int8, F::amx_bf16);
    return found;
}

#elif defined(__aarch64__) && defined(__linux__)

// For the rows of cpu_cores.inc. Big cores count as the little ones beside them: what is tuned for
// the latter checks again where it runs (layer/arm/gemm_by_core.cpp).
bool is_model(const char* vendor, int implementer, int part) {
    if (strcmp(vendor, "implementer") != 0) return false;
    return is_of_midr(read_midr(), implementer, part) || get_little_cpu_count() > 0;
}

#else

bool is_model(const char*, int, int) { return false; }

#endif

#if defined(QUOLL_X86)
#elif defined(__aarch64__) && defined(__linux__)

// Bits of AT_HWCAP and AT_HWCAP2 (Linux, Documentation/arch/arm64/elf_hwcaps.rst).
struct HwcapBit {
    F feature;
    unsigned long type;
    int bit;
};
constexpr HwcapBit kHwcapBits[] = {
    {F::neon, AT_HWCAP, 1},     {F::asimdhp, AT_HWCAP, 10},   {F::asimddp, AT_HWCAP, 20},
    {F::sve, AT_HWCAP, 22},     {F::asimdfhm, AT_HWCAP, 23},  {F::sve2, AT_HWCAP2, 1},
    {F::svei8mm, AT_HWCAP2, 9}, {F::svef32mm, AT_HWCAP2, 10}, {F::svebf16, AT_HWCAP2, 12},
    {F::i8mm, AT_HWCAP2, 13},   {F::bf16, AT_HWCAP2, 14},     {F::sme, AT_HWCAP2, 23},
};

CpuFeatures read_features() {
    CpuFeatures found;
    for (const HwcapBit& entry : kHwcapBits)
        if (getauxval(entry.type) >> entry.bit & 1) found.bits |= bits_of(entry.feature);
    return found;
}

#elif defined(__aarch64__) && defined(__APPLE__)

CpuFeatures read_features() {
    struct {
        F feature;
        const char* name;
    } const entries[] = {
        {F::asimdhp, "hw.optional.arm.FEAT_FP16"}, {F::asimddp, "hw.optional.arm.FEAT_DotProd"},
        {F::asimdfhm, "hw.optional.arm.FEAT_FHM"}, {F::i8mm, "hw.optional.arm.FEAT_I8MM"},
        {F::bf16, "hw.optional.arm.FEAT_BF16"},    {F::sme, "hw.optional.arm.FEAT_SME"},
    };
    CpuFeatures found(bits_of(F::neon));
    for (const auto& entry : entries) {
        int value = 0;
        size_t size = sizeof(value);
        if (sysctlbyname(entry.name, &value, &size, nullptr, 0) == 0 && value != 0)
            found.bits |= bits_of(entry.feature);
    }
    return found;
}

#elif defined(__arm__) && defined(__linux__)

// HWCAP_NEON, and HWCAP_VFPv4 where kernels have fused multiply-adds.
CpuFeatures read_features() {
#if defined(QUOLL_NO_ARM_FMA)
    constexpr unsigned long kNeeded = 1ul << 12;
#else
    constexpr unsigned long kNeeded = 1ul << 12 | 1ul << 16;
#endif
    return CpuFeatures((getauxval(AT_HWCAP) & kNeeded) == kNeeded ? bits_of(F::neon) : 0);
}

#elif defined(__aarch64__) && defined(_WIN32)

// Numbers of IsProcessorFeaturePresent (winnt.h of the Windows 11 SDK; older headers lack the
// names, and an older system says no). There is none for asimdfhm.
CpuFeatures read_features() {
    struct {
        F feature;
        DWORD number;
    } const entries[] = {
        {F::asimddp, 43},  {F::sve, 46},  {F::sve2, 47},    {F::svebf16, 52}, {F::svei8mm, 57},
        {F::svef32mm, 58}, {F::i8mm, 66}, {F::asimdhp, 67}, {F::bf16, 68},
    };
    CpuFeatures found(bits_of(F::neon));
    for (const auto& entry : entries)
        if (IsProcessorFeaturePresent(entry.number)) found.bits |= bits_of(entry.feature);
    return found;
}

#elif defined(__aarch64__)

// Every 64-bit ARM system has NEON.
CpuFeatures read_features() { return CpuFeatures(bits_of(F::neon)); }

#elif defined(__wasm__)

// A module whose vectors the engine does not know is not loaded at all.
CpuFeatures read_features() { return CpuFeatures(bits_of(F::simd128)); }

#elif defined(__riscv) && defined(__linux__)

// AT_HWCAP has a bit for each extension of one letter. Vendors' kernels set it for the draft of V
// as well (version 0.7.1, T-Head's C906 and C910): those need QUOLL_CPU_MASK=scalar.
CpuFeatures read_features() {
    return CpuFeatures(getauxval(AT_HWCAP) >> ('V' - 'A') & 1 ? bits_of(F::rvv) : 0);
}

#else

CpuFeatures read_features() { return CpuFeatures(); }

#endif

}  // namespace

CpuFeatures detect_cpu_features() { return read_features(); }

static CpuCore detect_cpu_core() {
    static constexpr struct {
        CpuCore core;
        const char* vendor;
        int family, model;
    } rows[] = {
#define QUOLL_CPU_CORE(core, vendor, family, model) {CpuCore::core, vendor, family, model},
#include "runtime/cpu_cores.inc"
#undef QUOLL_CPU_CORE
    };
    for (const auto& row : rows)
        if (is_model(row.vendor, row.family, row.model)) return row.core;
    return CpuCore::any;
}

CpuCore host_cpu_core() {
    static const CpuCore core = detect_cpu_core();
    return core;
}

const char* cpu_core_name(CpuCore core) {
#define QUOLL_CPU_CORE(name, vendor, family, model) \
    if (core == CpuCore::name) return #name;
#include "runtime/cpu_cores.inc"
#undef QUOLL_CPU_CORE
    return "any";
}

}  // namespace quoll
