#include "runtime/cpu_features.h"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "child_process.h"
#include "quoll/cpu.h"
#include "quoll/log.h"
#include "runtime/cpu_detect.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using quoll::CpuFeature;
using quoll::CpuFeatures;
using quoll::Isa;
using Names = std::set<std::string>;

Names names_of(const CpuFeatures& features) {
    Names names;
    for (int i = 0; i < int(CpuFeature::count); i++)
        if (features.has(CpuFeature(i))) names.insert(quoll::cpu_feature_name(CpuFeature(i)));
    return names;
}

CpuFeatures everything() { return CpuFeatures((uint64_t(1) << int(CpuFeature::count)) - 1); }

Names words(const std::string& text) {
    std::istringstream stream(text);
    Names result;
    for (std::string word; stream >> word;) result.insert(word);
    return result;
}

// Catches the log, at level warn.
class Features : public testing::Test {
protected:
    void SetUp() override {
        level_ = quoll::get_log_level();
        quoll::set_log_level(quoll::kLogWarn);
        quoll::set_log_sink(
            [](quoll::LogLevel, const char* message, void* user) {
                *static_cast<std::string*>(user) += std::string(message) + "\n";
            },
            &log);
    }
    void TearDown() override {
        EXPECT_EQ(quoll::set_cpu_mask(nullptr), 0);
        quoll::set_log_sink(nullptr, nullptr);
        quoll::set_log_level(level_);
    }
    std::string log;

private:
    quoll::LogLevel level_;
};

// The levels of this architecture, lowest first, and all that each allows. Written out here a
// second time on purpose.
struct Level {
    std::string word, allowed;
    Isa isa;
};
#if defined(__x86_64__)
const std::string kUnknownWord = "neon";
const std::string kV2 = "sse3 ssse3 sse4_1 sse4_2 popcnt ";
const std::string kV3 = kV2 + "avx f16c fma avx2 bmi1 bmi2 lzcnt movbe ";
const std::string kVnni = kV3 + "avx_vnni avx_vnni_int8 avx_vnni_int16 avx_ne_convert ";
const std::string kV4 = "avx512f avx512bw avx512dq avx512vl avx512cd ";
const std::string kFp16 = kVnni + kV4 + "avx512_vnni avx512_bf16 avx512_fp16 ";
const std::vector<Level> kLevels = {
    {"scalar", "", Isa::scalar},
    {"sse4", kV2, Isa::sse4},
    {"avx2", kV3, Isa::avx2},
    {"avxvnni", kVnni, Isa::avx2},
    {"avx512", kV3 + kV4, Isa::avx512},
    {"avx512vnni", kVnni + kV4 + "avx512_vnni", Isa::avx512},
    {"avx512bf16", kVnni + kV4 + "avx512_vnni avx512_bf16", Isa::avx512},
    {"avx512fp16", kFp16, Isa::avx512},
    {"amx", kFp16 + "amx_tile amx_int8 amx_bf16", Isa::avx512},
};
#elif defined(__aarch64__)
const std::string kUnknownWord = "avx2";
const std::string kDot = "neon asimdhp asimddp asimdfhm ";
const std::string kSve = kDot + "i8mm bf16 sve svei8mm svebf16 svef32mm ";
const std::vector<Level> kLevels = {
    {"scalar", "", Isa::scalar},
    {"neon", "neon", Isa::neon},
    {"asimdhp", "neon asimdhp", Isa::neon},
    {"asimddp", kDot, Isa::neon},
    {"i8mm", kDot + "i8mm bf16", Isa::neon},
    {"bf16", kDot + "i8mm bf16", Isa::neon},
    {"sve", kSve, Isa::neon},
    {"sve2", kSve + "sve2", Isa::neon},
    {"sme", kSve + "sve2 sme", Isa::neon},
};
#elif defined(__wasm__)
const std::string kUnknownWord = "avx2";
const std::vector<Level> kLevels = {{"scalar", "", Isa::scalar},
                                    {"simd128", "simd128", Isa::simd128}};
#elif defined(__riscv)
const std::string kUnknownWord = "avx2";
const std::vector<Level> kLevels = {{"scalar", "", Isa::scalar}, {"rvv", "rvv", Isa::rvv}};
#else
const std::string kUnknownWord = "avx2";
const std::vector<Level> kLevels = {{"scalar", "", Isa::scalar}};
#endif

Names intersection(const Names& a, const Names& b) {
    Names result;
    for (const std::string& name : a)
        if (b.count(name)) result.insert(name);
    return result;
}

std::string upper(std::string text) {
    for (char& c : text) c = char(std::toupper(c));
    return text;
}

TEST_F(Features, NamesAreUnique) {
    EXPECT_EQ(names_of(everything()).size(), size_t(CpuFeature::count));
    EXPECT_STREQ(quoll::cpu_feature_name(CpuFeature::count), "?");
    EXPECT_STREQ(quoll::cpu_feature_name(CpuFeature(-1)), "?");
}

// The words after the line's name in /proc/cpuinfo, of the first processor.
Names cpuinfo_flags() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0)
            return words(line.substr(line.find(':') + 1));
    return Names();
}

#if defined(__x86_64__)

// A field of the first processor in /proc/cpuinfo.
std::string cpuinfo_field(const std::string& name) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.rfind(name + "\t", 0) == 0) return line.substr(line.find(':') + 2);
    return "";
}

TEST(CpuCore, IsThatOfTheKernel) {
    const std::string vendor = cpuinfo_field("vendor_id"), model = cpuinfo_field("model");
    if (vendor.empty()) GTEST_SKIP() << "no /proc/cpuinfo";
    std::string expected = "any";
#define QUOLL_CPU_CORE(core, of_vendor, of_family, of_model)                               \
    if (vendor == of_vendor && cpuinfo_field("cpu family") == std::to_string(of_family) && \
        (of_model < 0 || model == std::to_string(of_model)))                               \
        expected = #core;
#include "runtime/cpu_cores.inc"
#undef QUOLL_CPU_CORE
    EXPECT_EQ(quoll::cpu_core_name(quoll::host_cpu_core()), expected);
}

TEST_F(Features, AgreeWithTheKernel) {
    const Names flags = cpuinfo_flags();
    if (flags.empty()) GTEST_SKIP() << "no /proc/cpuinfo";
    const std::map<std::string, std::string> renamed = {{"sse3", "pni"}, {"lzcnt", "abm"}};
    // Younger than many kernels, which then do not list them.
    const Names maybe_unlisted = {"avx_vnni_int8", "avx_vnni_int16", "avx_ne_convert"};
    for (int i = 0; i < int(CpuFeature::neon); i++) {
        const std::string name = quoll::cpu_feature_name(CpuFeature(i));
        const bool listed = flags.count(renamed.count(name) ? renamed.at(name) : name) != 0;
        const bool found = quoll::detected_cpu_features().has(CpuFeature(i));
        if (maybe_unlisted.count(name) && !listed) continue;
        if (name.rfind("amx", 0) == 0) {
            // The kernel may have refused; ARCH_GET_XCOMP_PERM tells what it has granted.
            uint64_t granted = 0;
            syscall(SYS_arch_prctl, 0x1022, &granted);
            EXPECT_EQ(found, listed && (granted >> 18 & 1)) << name;
        } else {
            EXPECT_EQ(found, listed) << name;
        }
    }
}

#elif defined(__aarch64__)

// Of the emulated processor by its name, or of the first one in /proc/cpuinfo by its numbers.
TEST(CpuCore, IsThatOfTheProcessor) {
    constexpr unsigned long kHwcapCpuid = 1 << 11;
    if (!(getauxval(AT_HWCAP) & kHwcapCpuid)) GTEST_SKIP() << "the kernel does not show it";
    std::string expected = "any";
    if (const char* emulated = std::getenv("QEMU_CPU")) {
        const std::string a55 = "midr=0x411fd050", name = emulated;
        if (name.find(a55) != std::string::npos) expected = "cortex_a55";
    } else {
        std::ifstream file("/proc/cpuinfo");
        std::string implementer, part;
        for (std::string line; std::getline(file, line) && (implementer.empty() || part.empty());) {
            if (line.rfind("CPU implementer", 0) == 0)
                implementer = line.substr(line.find(':') + 2);
            if (line.rfind("CPU part", 0) == 0) part = line.substr(line.find(':') + 2);
        }
        if (part.empty()) GTEST_SKIP() << "/proc/cpuinfo is not of this architecture";
        const int numbers[] = {std::stoi(implementer, nullptr, 0), std::stoi(part, nullptr, 0)};
#define QUOLL_CPU_CORE(core, vendor, family, model)                                          \
    if (std::string(vendor) == "implementer" && numbers[0] == family && numbers[1] == model) \
        expected = #core;
#include "runtime/cpu_cores.inc"
#undef QUOLL_CPU_CORE
    }
    // Little cores beside big ones count as such.
    if (quoll::get_little_cpu_count() > 0) expected = "cortex_a55";
    EXPECT_EQ(quoll::cpu_core_name(quoll::host_cpu_core()), expected);
}

#define QUOLL_READ_ID(name)                     \
    [] {                                        \
        uint64_t value;                         \
        __asm__("mrs %0, " name : "=r"(value)); \
        return value;                           \
    }()

// A four-bit field of an identification register (Arm ARM, D17.2).
int field(uint64_t id, int low) { return int(id >> low & 15); }

TEST_F(Features, AgreeWithTheIdentificationRegisters) {
    constexpr unsigned long kHwcapCpuid = 1 << 11;
    if (!(getauxval(AT_HWCAP) & kHwcapCpuid)) GTEST_SKIP() << "the kernel does not show them";
    const uint64_t pfr0 = QUOLL_READ_ID("S3_0_C0_C4_0"), zfr0 = QUOLL_READ_ID("S3_0_C0_C4_4");
    const uint64_t pfr1 = QUOLL_READ_ID("S3_0_C0_C4_1");
    const uint64_t isar0 = QUOLL_READ_ID("S3_0_C0_C6_0"), isar1 = QUOLL_READ_ID("S3_0_C0_C6_1");
    const bool sve = field(pfr0, 32) > 0;
    const std::map<std::string, bool> expected = {
        {"neon", field(pfr0, 20) != 15},
        {"asimdhp", field(pfr0, 20) == 1},
        {"asimddp", field(isar0, 44) > 0},
        {"asimdfhm", field(isar0, 48) > 0},
        {"bf16", field(isar1, 44) > 0},
        {"i8mm", field(isar1, 52) > 0},
        {"sve", sve},
        {"sve2", sve && field(zfr0, 0) > 0},
        {"svebf16", sve && field(zfr0, 20)},
        {"svei8mm", sve && field(zfr0, 44)},
        {"svef32mm", sve && field(zfr0, 52)},
        {"sme", field(pfr1, 24) > 0},
    };
    for (const auto& feature : expected)
        EXPECT_EQ(names_of(quoll::detected_cpu_features()).count(feature.first), feature.second)
            << feature.first;
}

// On a machine of its own /proc/cpuinfo lists them; an emulator may show that of its host.
TEST_F(Features, AgreeWithTheKernel) {
    const Names flags = cpuinfo_flags();
    if (!flags.count("asimd")) GTEST_SKIP() << "/proc/cpuinfo is not of this architecture";
    for (int i = int(CpuFeature::neon); i < int(CpuFeature::count); i++) {
        const std::string name = quoll::cpu_feature_name(CpuFeature(i));
        EXPECT_EQ(quoll::detected_cpu_features().has(CpuFeature(i)),
                  flags.count(name == "neon" ? "asimd" : name) != 0)
            << name;
    }
}

#endif

TEST_F(Features, EachLevelAllowsWhatItNames) {
    for (const Level& level : kLevels)
        for (const std::string& word : {level.word, upper(level.word)}) {
            CpuFeatures features = everything();
            ASSERT_EQ(quoll::cap_cpu_features(word.c_str(), &features), 0) << word;
            EXPECT_EQ(names_of(features), words(level.allowed)) << word;
            EXPECT_EQ(quoll::best_isa(features), level.isa) << word;
        }
    EXPECT_EQ(log, "");
}

// Words of a list add up; -NAME takes away, from everything if it comes first.
TEST_F(Features, AMaskMayNameFeatures) {
#if defined(__x86_64__)
    const std::map<std::string, std::string> masks = {
        {"avx2,avx512f", kV3 + "avx512f"},
        {"avx_vnni", "avx_vnni"},
        {"SSE4,AVX", kV2 + "avx"},
        {"avx512,avx512_vnni,-fma", kV3 + kV4 + "avx512_vnni -fma"},
        {"avx512,amx,-amx_tile,-amx_int8,-amx_bf16", kFp16},
        {"-avx512_fp16", kVnni + kV4 + "avx512_vnni avx512_bf16 amx_tile amx_int8 amx_bf16"},
    };
#elif defined(__aarch64__)
    const std::map<std::string, std::string> masks = {
        {"neon,asimddp", kDot},
        {"neon,svei8mm", "neon svei8mm"},
        {"sve2,-bf16", kSve + "sve2 -bf16"},
        {"-sve", kDot + "i8mm bf16 svei8mm svebf16 svef32mm sve2 sme"},
    };
#else
    const std::map<std::string, std::string> masks;
#endif
    for (const auto& mask : masks) {
        CpuFeatures features = everything();
        ASSERT_EQ(quoll::cap_cpu_features(mask.first.c_str(), &features), 0) << mask.first;
        Names allowed = words(mask.second);
        for (const std::string& word : words(mask.second))
            if (word[0] == '-') allowed.erase(word), allowed.erase(word.substr(1));
        EXPECT_EQ(names_of(features), allowed) << mask.first;
    }
    EXPECT_EQ(log, "");
    for (const char* wrong : {"scalar,", ",scalar", "-", "-scala", "scalar,,", "scalar scalar"}) {
        CpuFeatures features = everything();
        EXPECT_LT(quoll::cap_cpu_features(wrong, &features), 0) << wrong;
        EXPECT_EQ(features.bits, everything().bits) << wrong;
    }
}

TEST_F(Features, ACapOnlyRemoves) {
    for (const Level& level : kLevels) {
        CpuFeatures features;
        EXPECT_EQ(quoll::cap_cpu_features(level.word.c_str(), &features), 0);
        EXPECT_EQ(features.bits, 0u);
    }
    for (const char* none : {static_cast<const char*>(nullptr), ""}) {
        CpuFeatures features = everything();
        EXPECT_EQ(quoll::cap_cpu_features(none, &features), 0);
        EXPECT_EQ(features.bits, everything().bits);
    }
}

TEST_F(Features, AnUnknownCapIsReportedAndIgnored) {
    for (const std::string& word : {kUnknownWord, std::string("scala"), std::string("scalars")}) {
        log.clear();
        CpuFeatures features = everything();
        EXPECT_LT(quoll::cap_cpu_features(word.c_str(), &features), 0);
        EXPECT_EQ(features.bits, everything().bits);
        for (const Level& level : kLevels)
            EXPECT_NE(log.find(level.word), std::string::npos) << log;
        EXPECT_NE(log.find("'" + word + "'"), std::string::npos) << log;
    }
    log.clear();
    EXPECT_LT(quoll::cap_cpu_features("scalar", nullptr), 0);
    EXPECT_NE(log.find("null"), std::string::npos) << log;
}

// Each required bit alone, when missing, costs the level.
TEST_F(Features, BestIsaNeedsAllOfItsFeatures) {
    const struct {
        Isa isa;
        std::string needs;
    } isas[] = {
        {Isa::sse4, "sse3 ssse3 sse4_1 sse4_2 popcnt"},
        {Isa::avx2, "avx f16c fma avx2 bmi1 bmi2 lzcnt movbe"},
        {Isa::avx512, "avx512f avx512bw avx512dq avx512vl avx512cd"},
    };
    CpuFeatures features;
    Isa below = Isa::scalar;
    for (const auto& isa : isas) {
        uint64_t added = 0;
        for (int i = 0; i < int(CpuFeature::count); i++)
            if (words(isa.needs).count(quoll::cpu_feature_name(CpuFeature(i))))
                added |= uint64_t(1) << i;
        features.bits |= added;
        EXPECT_EQ(quoll::best_isa(features), isa.isa);
        for (uint64_t bit = 1; bit; bit <<= 1) {
            if (!(added & bit)) continue;
            EXPECT_EQ(quoll::best_isa(CpuFeatures(features.bits & ~bit)), below) << bit;
        }
        below = isa.isa;
    }
    EXPECT_EQ(quoll::best_isa(CpuFeatures(uint64_t(1) << int(CpuFeature::neon))), Isa::neon);
    EXPECT_STREQ(quoll::isa_name(Isa::scalar), "scalar");
    EXPECT_STREQ(quoll::isa_name(Isa::sse4), "sse4");
    EXPECT_STREQ(quoll::isa_name(Isa::avx2), "avx2");
    EXPECT_STREQ(quoll::isa_name(Isa::avx512), "avx512");
    EXPECT_STREQ(quoll::isa_name(Isa::neon), "neon");
    EXPECT_EQ(quoll::best_isa(CpuFeatures(uint64_t(1) << int(CpuFeature::simd128))), Isa::simd128);
    EXPECT_STREQ(quoll::isa_name(Isa::simd128), "simd128");
    EXPECT_EQ(quoll::best_isa(CpuFeatures(uint64_t(1) << int(CpuFeature::rvv))), Isa::rvv);
    EXPECT_STREQ(quoll::isa_name(Isa::rvv), "rvv");
}

TEST_F(Features, TheMaskCapsTheHost) {
    const CpuFeatures& uncapped = quoll::host_cpu_features();
    const uint64_t before = uncapped.bits;
    for (const Level& level : kLevels) {
        ASSERT_EQ(quoll::set_cpu_mask(level.word.c_str()), 0);
        EXPECT_EQ(names_of(quoll::host_cpu_features()),
                  intersection(names_of(uncapped), words(level.allowed)));
        EXPECT_EQ(uncapped.bits, before);  // answers that were given stay as they were
    }
    // A refused mask leaves the last one.
    ASSERT_EQ(quoll::set_cpu_mask("scalar"), 0);
    EXPECT_LT(quoll::set_cpu_mask("fast"), 0);
    EXPECT_NE(log.find("'fast'"), std::string::npos);
    EXPECT_EQ(quoll::host_cpu_features().bits, 0u);
    EXPECT_EQ(quoll::set_cpu_mask(""), 0);
    EXPECT_EQ(quoll::host_cpu_features().bits, before);
}

TEST_F(Features, SupportFunctionsFollowTheMask) {
    const std::map<std::string, int (*)()> functions = {
        {"neon", quoll::cpu_support_arm_neon},
        {"asimdhp", quoll::cpu_support_arm_asimdhp},
        {"asimddp", quoll::cpu_support_arm_asimddp},
        {"asimdfhm", quoll::cpu_support_arm_asimdfhm},
        {"bf16", quoll::cpu_support_arm_bf16},
        {"i8mm", quoll::cpu_support_arm_i8mm},
        {"sve", quoll::cpu_support_arm_sve},
        {"sve2", quoll::cpu_support_arm_sve2},
        {"svebf16", quoll::cpu_support_arm_svebf16},
        {"svei8mm", quoll::cpu_support_arm_svei8mm},
        {"svef32mm", quoll::cpu_support_arm_svef32mm},
        {"avx", quoll::cpu_support_x86_avx},
        {"fma", quoll::cpu_support_x86_fma},
        {"f16c", quoll::cpu_support_x86_f16c},
        {"avx2", quoll::cpu_support_x86_avx2},
        {"avx_vnni", quoll::cpu_support_x86_avx_vnni},
        {"avx_vnni_int8", quoll::cpu_support_x86_avx_vnni_int8},
        {"avx_vnni_int16", quoll::cpu_support_x86_avx_vnni_int16},
        {"avx_ne_convert", quoll::cpu_support_x86_avx_ne_convert},
        {"avx512bw", quoll::cpu_support_x86_avx512},
        {"avx512_vnni", quoll::cpu_support_x86_avx512_vnni},
        {"avx512_bf16", quoll::cpu_support_x86_avx512_bf16},
        {"avx512_fp16", quoll::cpu_support_x86_avx512_fp16},
        {"amx_int8", quoll::cpu_support_x86_amx_int8},
        {"amx_bf16", quoll::cpu_support_x86_amx_bf16},
        {"rvv", quoll::cpu_support_riscv_v},
    };
    for (const Level& level : kLevels) {
        ASSERT_EQ(quoll::set_cpu_mask(level.word.c_str()), 0);
        const Names names = names_of(quoll::host_cpu_features());
        for (const auto& function : functions)
            EXPECT_EQ(function.second(), int(names.count(function.first)))
                << function.first << " below " << level.word;
#if defined(QUOLL_NO_ARM_FMA)  // neon needs no VFPv4
        EXPECT_LE(quoll::cpu_support_arm_vfpv4(), quoll::cpu_support_arm_neon());
#else
        EXPECT_EQ(quoll::cpu_support_arm_vfpv4(), quoll::cpu_support_arm_neon());
#endif
    }
}

// Holds whatever this program's own environment says.
TEST_F(Features, TheEnvironmentOfThisProcessCaps) {
    const char* mask = std::getenv("QUOLL_CPU_MASK");
    Names allowed = names_of(everything());
    for (const Level& level : kLevels)
        if (mask && upper(mask) == upper(level.word)) allowed = words(level.allowed);
    EXPECT_EQ(names_of(quoll::host_cpu_features()),
              intersection(names_of(quoll::detected_cpu_features()), allowed));
}

// Exits with 0 if the environment's cap, and then both caps, allow what they should.
void exit_with_environment_mask(const std::string& word, const std::string& allowed) {
    unsetenv("QUOLL_LOG");
    setenv("QUOLL_CPU_MASK", word.c_str(), 1);
    const Names expected = intersection(names_of(quoll::detected_cpu_features()), words(allowed));
    if (names_of(quoll::host_cpu_features()) != expected) std::exit(1);
    if (quoll::set_cpu_mask(kLevels.back().word.c_str()) != 0) std::exit(2);
    if (names_of(quoll::host_cpu_features()) != expected) std::exit(3);
    if (quoll::set_cpu_mask("scalar") != 0) std::exit(4);
    if (quoll::host_cpu_features().bits != 0) std::exit(5);
    std::exit(0);
}

TEST(FeaturesEnvironment, CapsAtAnyLevel) {
    QUOLL_NEEDS_FRESH_PROCESS();
    for (const Level& level : kLevels)
        EXPECT_EXIT(exit_with_environment_mask(upper(level.word), level.allowed),
                    testing::ExitedWithCode(0), "^$")
            << level.word;
}

TEST(FeaturesEnvironment, AnUnknownWordIsReportedOnceAndIgnored) {
    QUOLL_NEEDS_FRESH_PROCESS();
    std::string all;
    for (const std::string& name : names_of(everything())) all += name + " ";
    std::string message = "^[^\n]*QUOLL_CPU_MASK: expected one of scalar";
    message += "[^\n]*got '" + kUnknownWord + "', ignored\n$";
    EXPECT_EXIT(exit_with_environment_mask(kUnknownWord, all), testing::ExitedWithCode(0), message);
}

}  // namespace
