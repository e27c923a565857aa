#include "runtime/cpu_features.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "quoll/log.h"
#include "quoll/platform.h"
#include "quoll/status.h"
#include "runtime/ascii.h"
#include "runtime/cpu_detect.h"

namespace quoll {
namespace {

using F = CpuFeature;

// Kernels that only tests have use features numbered above those of processors.
static_assert(int(F::count) < 63, "CpuFeatures::bits is too small");

template <typename... Features>
constexpr uint64_t bits_of(Features... features) {
    return ((uint64_t(1) << int(features)) | ... | 0);
}

enum Architecture { any, x86, arm, wasm, riscv };
#if defined(__x86_64__) || defined(__i386__)
constexpr Architecture kArchitecture = x86;
#elif defined(__aarch64__) || defined(__arm__)
constexpr Architecture kArchitecture = arm;
#elif defined(__wasm__)
constexpr Architecture kArchitecture = wasm;
#elif defined(__riscv)
constexpr Architecture kArchitecture = riscv;
#else
constexpr Architecture kArchitecture = any;
#endif

#define QUOLL_CPU_LEVEL(architecture, word, features) \
    [[maybe_unused]] constexpr uint64_t kLevel_##word = features;
#include "runtime/cpu_levels.inc"
#undef QUOLL_CPU_LEVEL

struct Level {
    Architecture architecture;
    const char* word;
    uint64_t allowed;
    constexpr bool is_here() const { return architecture == any || architecture == kArchitecture; }
};
constexpr Level kAllLevels[] = {
#define QUOLL_CPU_LEVEL(architecture, word, features) {architecture, #word, kLevel_##word},
#include "runtime/cpu_levels.inc"
#undef QUOLL_CPU_LEVEL
};
constexpr int count_levels() {
    int count = 0;
    for (const Level& level : kAllLevels) count += level.is_here();
    return count;
}
// Those of this architecture, so that the library holds no others.
struct Levels {
    Level levels[count_levels()] = {};
    constexpr Levels() {
        int i = 0;
        for (const Level& level : kAllLevels)
            if (level.is_here()) levels[i++] = level;
    }
};
constexpr Levels kLevels;

// The features of this architecture have the numbers from first to before last.
constexpr int kFirstFeature = kArchitecture == arm     ? int(F::neon)
                              : kArchitecture == wasm  ? int(F::simd128)
                              : kArchitecture == riscv ? int(F::rvv)
                                                       : 0;
constexpr int kLastFeature = kArchitecture == x86     ? int(F::neon)
                             : kArchitecture == arm   ? int(F::simd128)
                             : kArchitecture == wasm  ? int(F::rvv)
                             : kArchitecture == riscv ? int(F::count)
                                                      : 0;

const Level* find_level(const std::string& word) {
    for (const Level& level : kLevels.levels)
        if (equal_ignoring_case(word.c_str(), level.word)) return &level;
    return nullptr;
}

uint64_t find_feature(const std::string& word) {
    for (int i = kFirstFeature; i < kLastFeature; i++)
        if (equal_ignoring_case(word.c_str(), cpu_feature_name(F(i)))) return bits_of(F(i));
    return 0;
}

// What a mask allows; false if one of its words is unknown.
bool parse_mask(const char* mask, uint64_t* allowed) {
    const std::string text = mask;
    *allowed = 0;
    if (text[0] == '-')
        for (int i = kFirstFeature; i < kLastFeature; i++) *allowed |= bits_of(F(i));
    for (size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
        end = std::min(text.find(',', begin), text.size());
        const std::string word = text.substr(begin, end - begin);
        const bool removes = word[0] == '-';
        const Level* level = removes ? nullptr : find_level(word);
        const uint64_t feature = find_feature(removes ? word.substr(1) : word);
        if (!level && !feature) return false;
        if (removes)
            *allowed &= ~feature;
        else
            *allowed |= level ? level->allowed : feature;
    }
    return true;
}

void warn_unknown_mask(const char* where, const char* mask) {
    std::string legal;
    for (const Level& level : kLevels.levels)
        legal.append(legal.empty() ? "" : ", ").append(level.word);
    QUOLL_LOGW(
        "[cpu] %s: expected one of %s, or a list of these and of features; got '%.64s', "
        "ignored",
        where, legal.c_str(), mask);
}

struct Host {
    CpuFeatures detected;
    uint64_t allowed = ~uint64_t(0);     // by QUOLL_CPU_MASK
    const char* unknown_mask = nullptr;  // QUOLL_CPU_MASK, if it is none

    Host() : detected(detect_cpu_features()) {
        const char* mask = QUOLL_STRING ? std::getenv("QUOLL_CPU_MASK") : nullptr;
        if (!mask || !*mask || parse_mask(mask, &allowed)) return;
        allowed = ~uint64_t(0);
        unknown_mask = mask;
    }
};

std::atomic<bool> g_warned{false};

const Host& host() {
    static const Host instance;
    // Logged outside the initialisation, which a sink that asks for features would enter again.
    if (QUOLL_STRING && instance.unknown_mask && !g_warned.exchange(true))
        warn_unknown_mask("QUOLL_CPU_MASK", instance.unknown_mask);
    return instance;
}

// Answers are never freed: one for each mask that was ever set.
struct Answer {
    CpuFeatures features;
    const Answer* next;
};
std::atomic<const Answer*> g_answers{nullptr};
std::atomic<const CpuFeatures*> g_host{nullptr};

const CpuFeatures& answer_for(uint64_t bits) {
    const Answer* first = g_answers.load();
    for (const Answer* a = first; a; a = a->next)
        if (a->features.bits == bits) return a->features;
    Answer* added = new Answer{CpuFeatures(bits), first};
    while (!g_answers.compare_exchange_weak(first, added)) added->next = first;
    return added->features;
}

void allow(uint64_t allowed) {
    g_host.store(&answer_for(host().detected.bits & host().allowed & allowed));
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

const CpuFeatures& host_cpu_features() {
    if (!g_host.load()) {
        const CpuFeatures* none = nullptr;
        g_host.compare_exchange_strong(none, &answer_for(host().detected.bits & host().allowed));
    }
    return *g_host.load();
}

int set_cpu_mask(const char* mask) {
    uint64_t allowed = ~uint64_t(0);
    if (mask && *mask && !parse_mask(mask, &allowed)) {
        warn_unknown_mask("set_cpu_mask", mask);
        return kError;
    }
    allow(allowed);
    return kOk;
}

int cap_cpu_features(const char* mask, CpuFeatures* features) {
    if (!features) {
        QUOLL_LOGE("[cpu] cap_cpu_features: expected a CpuFeatures, got null");
        return kError;
    }
    if (!mask || !*mask) return kOk;
    uint64_t allowed;
    if (!parse_mask(mask, &allowed)) {
        warn_unknown_mask("cap_cpu_features", mask);
        return kError;
    }
    features->bits &= allowed;
    return kOk;
}

CpuFeatures isa_features(Isa isa) {
    switch (isa) {
#define QUOLL_ISA_CASE(name) \
    case Isa::name:          \
        return CpuFeatures(kLevel_##name);
        QUOLL_VECTOR_ISAS(QUOLL_ISA_CASE)
#undef QUOLL_ISA_CASE
    }
    return CpuFeatures();
}

Isa best_isa(const CpuFeatures& features) {
    Isa best = Isa::scalar;
#define QUOLL_ISA_TRY(name) \
    if (features.has_all(isa_features(Isa::name))) best = Isa::name;
    QUOLL_VECTOR_ISAS(QUOLL_ISA_TRY)
#undef QUOLL_ISA_TRY
    return best;
}

const char* isa_name(Isa isa) {
    switch (isa) {
#define QUOLL_ISA_CASE(name) \
    case Isa::name:          \
        return #name;
        QUOLL_VECTOR_ISAS(QUOLL_ISA_CASE)
#undef QUOLL_ISA_CASE
    }
    return "?";
}

}  // namespace quoll
