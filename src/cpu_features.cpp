#include "cpu_features.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "ascii_private.h"
#include "log.h"
#include "status.h"

#if defined(__x86_64__) || defined(__i386__)
#define QUOLL_X86 1
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace quoll {
namespace {

using F = CpuFeature;

static_assert(int(F::count) <= 64, "CpuFeatures::bits is too small");

template <typename... Features>
constexpr uint64_t bits_of(Features... features) {
    return ((uint64_t(1) << int(features)) | ... | 0);
}

// The feature sets of the levels, each on top of a lower one.
constexpr uint64_t kSse4 = bits_of(F::sse3, F::ssse3, F::sse4_1, F::sse4_2, F::popcnt);
constexpr uint64_t kAvx2 =
    kSse4 | bits_of(F::avx, F::f16c, F::fma, F::avx2, F::bmi1, F::bmi2, F::lzcnt, F::movbe);
constexpr uint64_t kAvxVnni =
    kAvx2 | bits_of(F::avx_vnni, F::avx_vnni_int8, F::avx_vnni_int16, F::avx_ne_convert);
constexpr uint64_t kAvx512 =
    kAvx2 | bits_of(F::avx512f, F::avx512bw, F::avx512dq, F::avx512vl, F::avx512cd);
constexpr uint64_t kNeon = bits_of(F::neon);

struct Level {
    const char* word;
    uint64_t allowed;
};

#if defined(QUOLL_X86)
constexpr uint64_t kAvx512Vnni = kAvx512 | kAvxVnni | bits_of(F::avx512_vnni);
constexpr uint64_t kAvx512Bf16 = kAvx512Vnni | bits_of(F::avx512_bf16);
constexpr uint64_t kAvx512Fp16 = kAvx512Bf16 | bits_of(F::avx512_fp16);
constexpr uint64_t kAmx = kAvx512Fp16 | bits_of(F::amx_tile, F::amx_int8, F::amx_bf16);
constexpr Level kLevels[] = {
    {"scalar", 0},
    {"sse4", kSse4},
    {"avx2", kAvx2},
    {"avxvnni", kAvxVnni},
    {"avx512", kAvx512},
    {"avx512vnni", kAvx512Vnni},
    {"avx512bf16", kAvx512Bf16},
    {"avx512fp16", kAvx512Fp16},
    {"amx", kAmx},
};
#elif defined(__aarch64__)
constexpr uint64_t kAsimdHp = kNeon | bits_of(F::asimdhp);
constexpr uint64_t kAsimdDp = kAsimdHp | bits_of(F::asimddp, F::asimdfhm);
constexpr uint64_t kI8mmBf16 = kAsimdDp | bits_of(F::i8mm, F::bf16);
constexpr uint64_t kSve = kI8mmBf16 | bits_of(F::sve, F::svei8mm, F::svebf16, F::svef32mm);
constexpr Level kLevels[] = {
    {"scalar", 0},         {"neon", kNeon},
    {"asimdhp", kAsimdHp}, {"asimddp", kAsimdDp},
    {"i8mm", kI8mmBf16},   {"bf16", kI8mmBf16},
    {"sve", kSve},         {"sve2", kSve | bits_of(F::sve2)},
};
#else
constexpr Level kLevels[] = {{"scalar", 0}};
#endif
constexpr int kLevelCount = int(sizeof(kLevels) / sizeof(kLevels[0]));

int find_level(const char* word) {
    for (int i = 0; i < kLevelCount; i++)
        if (equal_ignoring_case(word, kLevels[i].word)) return i;
    return -1;
}

void warn_unknown_level(const char* where, const char* word) {
    std::string legal;
    for (const Level& level : kLevels) legal.append(legal.empty() ? "" : ", ").append(level.word);
    QUOLL_LOGW("[cpu] %s: expected one of %s; got '%.64s', ignored", where, legal.c_str(), word);
}

#if defined(QUOLL_X86)

enum Register { kEax, kEbx, kEcx, kEdx };

// Register state that the operating system must save for a feature: bits of XCR0 (Intel SDM
// vol. 1, 13.1): 1 SSE, 2 AVX, 5..7 AVX-512, 17..18 AMX.
enum : uint32_t { kStateNone = 0, kStateAvx = 0x6, kStateAvx512 = 0xe6, kStateAmx = 0x60006 };

// Where CPUID says so (Intel SDM vol. 2, CPUID; AMD APM vol. 3 for 0x80000001); grouped by leaf,
// because reading one costs microseconds in a virtual machine.
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

CpuFeatures detect() {
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
    {F::i8mm, AT_HWCAP2, 13},   {F::bf16, AT_HWCAP2, 14},
};

CpuFeatures detect() {
    CpuFeatures found;
    for (const HwcapBit& entry : kHwcapBits)
        if (getauxval(entry.type) >> entry.bit & 1) found.bits |= bits_of(entry.feature);
    return found;
}

#elif defined(__aarch64__) && defined(__APPLE__)

CpuFeatures detect() {
    struct {
        F feature;
        const char* name;
    } const entries[] = {
        {F::asimdhp, "hw.optional.arm.FEAT_FP16"}, {F::asimddp, "hw.optional.arm.FEAT_DotProd"},
        {F::asimdfhm, "hw.optional.arm.FEAT_FHM"}, {F::i8mm, "hw.optional.arm.FEAT_I8MM"},
        {F::bf16, "hw.optional.arm.FEAT_BF16"},
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

#elif defined(__aarch64__)

// Every 64-bit ARM system has NEON.
CpuFeatures detect() { return CpuFeatures(bits_of(F::neon)); }

#else

CpuFeatures detect() { return CpuFeatures(); }

#endif

// Everything host_cpu_features() can answer: one entry a cap, and the last for no cap.
struct Host {
    CpuFeatures detected;
    CpuFeatures capped[kLevelCount + 1];
    const char* unknown_mask = nullptr;  // QUOLL_CPU_MASK, if it is no level

    Host() : detected(detect()) {
        uint64_t allowed = ~uint64_t(0);
        const char* word = std::getenv("QUOLL_CPU_MASK");
        if (word && *word) {
            const int level = find_level(word);
            if (level >= 0)
                allowed = kLevels[level].allowed;
            else
                unknown_mask = word;
        }
        for (int i = 0; i < kLevelCount; i++)
            capped[i].bits = detected.bits & allowed & kLevels[i].allowed;
        capped[kLevelCount].bits = detected.bits & allowed;
    }
};

std::atomic<int> g_cap{kLevelCount};
std::atomic<bool> g_warned{false};

const Host& host() {
    static const Host instance;
    // Said outside the initialisation, which a sink that asks for features would enter again.
    if (instance.unknown_mask && !g_warned.exchange(true))
        warn_unknown_level("QUOLL_CPU_MASK", instance.unknown_mask);
    return instance;
}

}  // namespace

const char* cpu_feature_name(CpuFeature feature) {
    static const char* const names[] = {
#define QUOLL_CPU_FEATURE_NAME(name) #name,
        QUOLL_CPU_FEATURES(QUOLL_CPU_FEATURE_NAME)
#undef QUOLL_CPU_FEATURE_NAME
    };
    return unsigned(feature) < unsigned(F::count) ? names[int(feature)] : "?";
}

const CpuFeatures& detected_cpu_features() { return host().detected; }

const CpuFeatures& host_cpu_features() { return host().capped[g_cap.load()]; }

int set_cpu_mask(const char* mask) {
    int level = kLevelCount;
    if (mask && *mask) {
        level = find_level(mask);
        if (level < 0) {
            warn_unknown_level("set_cpu_mask", mask);
            return kError;
        }
    }
    g_cap.store(level);
    return kOk;
}

int cap_cpu_features(const char* mask, CpuFeatures* features) {
    if (!features) {
        QUOLL_LOGE("[cpu] cap_cpu_features: expected a CpuFeatures, got null");
        return kError;
    }
    if (!mask || !*mask) return kOk;
    const int level = find_level(mask);
    if (level < 0) {
        warn_unknown_level("cap_cpu_features", mask);
        return kError;
    }
    features->bits &= kLevels[level].allowed;
    return kOk;
}

Isa best_isa(const CpuFeatures& features) {
    auto has_all = [&](uint64_t bits) { return (features.bits & bits) == bits; };
    if (has_all(kAvx512)) return Isa::avx512;
    if (has_all(kAvx2)) return Isa::avx2;
    if (has_all(kSse4)) return Isa::sse4;
    if (has_all(kNeon)) return Isa::neon;
    return Isa::scalar;
}

const char* isa_name(Isa isa) {
    switch (isa) {
        case Isa::scalar:
            return "scalar";
        case Isa::sse4:
            return "sse4";
        case Isa::avx2:
            return "avx2";
        case Isa::avx512:
            return "avx512";
        case Isa::neon:
            return "neon";
    }
    return "?";
}

}  // namespace quoll
