#include "quoll/cpu.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "quoll/log.h"
#include "quoll/platform.h"
#include "quoll/status.h"
#include "runtime/cpu_features.h"
#include "runtime/cpu_topology.h"
#include "runtime/thread_pool.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>
#endif
namespace quoll {

#if defined(__linux__)
static void set_member(cpu_set_t* set, int cpu, bool on) {
    if (on)
        CPU_SET(cpu, set);
    else
        CPU_CLR(cpu, set);
}
#define QUOLL_CPU_MEMBERS cpu_set
#define QUOLL_CPU_MEMBER(cpu) CPU_ISSET(cpu, &cpu_set)
#else
static void set_member(uint64_t (*words)[kMaxCpus / 64], int cpu, bool on) {
    const uint64_t bit = uint64_t(1) << cpu % 64;
    (*words)[cpu / 64] = on ? (*words)[cpu / 64] | bit : (*words)[cpu / 64] & ~bit;
}
#define QUOLL_CPU_MEMBERS words_
#define QUOLL_CPU_MEMBER(cpu) (words_[cpu / 64] >> cpu % 64 & 1)
#endif

CpuSet::CpuSet() { disable_all(); }

int CpuSet::enable(int cpu) {
    if (cpu < 0 || cpu >= kMaxCpus) {
        QUOLL_LOGE("[CpuSet] enable: expected a processor 0..%d, got %d", kMaxCpus - 1, cpu);
        return kError;
    }
    set_member(&QUOLL_CPU_MEMBERS, cpu, true);
    return kOk;
}

int CpuSet::disable(int cpu) {
    if (cpu < 0 || cpu >= kMaxCpus) {
        QUOLL_LOGE("[CpuSet] disable: expected a processor 0..%d, got %d", kMaxCpus - 1, cpu);
        return kError;
    }
    set_member(&QUOLL_CPU_MEMBERS, cpu, false);
    return kOk;
}

void CpuSet::disable_all() { std::memset(&QUOLL_CPU_MEMBERS, 0, sizeof(QUOLL_CPU_MEMBERS)); }

bool CpuSet::is_enabled(int cpu) const {
    return cpu >= 0 && cpu < kMaxCpus && QUOLL_CPU_MEMBER(cpu) != 0;
}

int CpuSet::num_enabled() const {
    int count = 0;
    for (int cpu = 0; cpu < kMaxCpus; cpu++) count += is_enabled(cpu);
    return count;
}

bool CpuSet::operator==(const CpuSet& other) const {
    return std::memcmp(&QUOLL_CPU_MEMBERS, &other.QUOLL_CPU_MEMBERS, sizeof(QUOLL_CPU_MEMBERS)) ==
           0;
}

namespace {

int host_has(CpuFeature feature) { return host_cpu_features().has(feature); }

#if defined(__linux__)
void add_affinity(pid_t thread, CpuSet* set) {
    cpu_set_t mask;
    if (sched_getaffinity(thread, sizeof(mask), &mask) != 0) return;
    for (int cpu = 0; cpu < kMaxCpus; cpu++)
        if (CPU_ISSET(cpu, &mask)) set->enable(cpu);
}
#endif

// The processors on which this process may run. The application may have bound its main thread or
// the calling thread to fewer than the process was started with, hence the union of both.
CpuSet allowed_cpus() {
    CpuSet set;
#if defined(__linux__)
    add_affinity(0, &set);
    add_affinity(getpid(), &set);
#endif
    if (set.num_enabled() > 0) return set;
    const int online = int(std::thread::hardware_concurrency());
    for (int cpu = 0; cpu < online && cpu < kMaxCpus; cpu++) set.enable(cpu);
    if (online < 1) set.enable(0);
    return set;
}

const CpuTopology& topology() {
    static const CpuTopology instance = read_cpu_topology(std::string(), allowed_cpus());
    return instance;
}

// Limits a number of processors to what the quota pays for.
int paid(int count) {
    const int quota = topology().quota;
    return quota > 0 && quota < count ? quota : count;
}

// Binds the calling thread; returns 0 or the system's error number.
int bind_this_thread(const CpuSet& set) {
#if defined(__linux__)
    return sched_setaffinity(0, sizeof(set.cpu_set), &set.cpu_set) == 0 ? 0 : errno;
#else
    (void)set;
    return ENOSYS;
#endif
}

std::atomic<int> g_powersave{0};
std::atomic<int> g_blocktime{0};

}  // namespace

int cpu_support_arm_neon() { return host_has(CpuFeature::neon); }
int cpu_support_arm_vfpv4() {
#if defined(QUOLL_NO_ARM_FMA) && defined(__arm__) && defined(__linux__)
    // The feature neon does not include HWCAP_VFPv4 in this build.
    if (!(getauxval(AT_HWCAP) >> 16 & 1)) return 0;
#endif
    return host_has(CpuFeature::neon);
}
int cpu_support_arm_asimdhp() { return host_has(CpuFeature::asimdhp); }
int cpu_support_arm_asimddp() { return host_has(CpuFeature::asimddp); }
int cpu_support_arm_asimdfhm() { return host_has(CpuFeature::asimdfhm); }
int cpu_support_arm_bf16() { return host_has(CpuFeature::bf16); }
int cpu_support_arm_i8mm() { return host_has(CpuFeature::i8mm); }
int cpu_support_arm_sve() { return host_has(CpuFeature::sve); }
int cpu_support_arm_sve2() { return host_has(CpuFeature::sve2); }
int cpu_support_arm_svebf16() { return host_has(CpuFeature::svebf16); }
int cpu_support_arm_svei8mm() { return host_has(CpuFeature::svei8mm); }
int cpu_support_arm_svef32mm() { return host_has(CpuFeature::svef32mm); }
int cpu_support_x86_avx() { return host_has(CpuFeature::avx); }
int cpu_support_x86_fma() { return host_has(CpuFeature::fma); }
int cpu_support_x86_f16c() { return host_has(CpuFeature::f16c); }
int cpu_support_x86_avx2() {
    return host_has(CpuFeature::avx2) && host_has(CpuFeature::fma) && host_has(CpuFeature::f16c);
}
int cpu_support_x86_avx_vnni() { return host_has(CpuFeature::avx_vnni); }
int cpu_support_x86_avx_vnni_int8() { return host_has(CpuFeature::avx_vnni_int8); }
int cpu_support_x86_avx_vnni_int16() { return host_has(CpuFeature::avx_vnni_int16); }
int cpu_support_x86_avx_ne_convert() { return host_has(CpuFeature::avx_ne_convert); }
int cpu_support_x86_avx512() { return host_cpu_features().has_all(isa_features(Isa::avx512)); }
int cpu_support_x86_avx512_vnni() { return host_has(CpuFeature::avx512_vnni); }
int cpu_support_x86_avx512_bf16() { return host_has(CpuFeature::avx512_bf16); }
int cpu_support_x86_avx512_fp16() { return host_has(CpuFeature::avx512_fp16); }
int cpu_support_x86_amx_int8() {
    return host_has(CpuFeature::amx_tile) && host_has(CpuFeature::amx_int8);
}
int cpu_support_x86_amx_bf16() {
    return host_has(CpuFeature::amx_tile) && host_has(CpuFeature::amx_bf16);
}
int cpu_support_riscv_v() { return host_has(CpuFeature::rvv); }

int get_cpu_count() { return paid(topology().all.num_enabled()); }
int get_little_cpu_count() { return paid(topology().little.num_enabled()); }
int get_big_cpu_count() { return paid(topology().big.num_enabled()); }
int get_physical_cpu_count() { return paid(topology().physical_big + topology().physical_little); }
int get_physical_little_cpu_count() { return paid(topology().physical_little); }
int get_physical_big_cpu_count() { return paid(topology().physical_big); }

int get_cpu_level1_cache_size() { return topology().l1d; }
int get_cpu_level2_cache_size() { return topology().l2; }
int get_cpu_level3_cache_size() { return topology().l3; }

int get_cpu_powersave() { return g_powersave; }

int set_cpu_powersave(int powersave) {
    if (powersave < 0 || powersave > 2) {
        QUOLL_LOGE("[cpu] set_cpu_powersave: expected 0 (all), 1 (little) or 2 (big), got %d",
                   powersave);
        return kError;
    }
    QUOLL_RETURN_IF_ERROR(set_cpu_thread_affinity(get_cpu_thread_affinity_mask(powersave)));
    g_powersave = powersave;
    return kOk;
}

const CpuSet& get_cpu_thread_affinity_mask(int powersave) {
    if (powersave < 0 || powersave > 2)
        QUOLL_LOGE("[cpu] get_cpu_thread_affinity_mask: expected 0, 1 or 2, got %d", powersave);
    const CpuTopology& cpus = topology();
    if (powersave == 2) return cpus.big;
    return powersave == 1 && cpus.little.num_enabled() > 0 ? cpus.little : cpus.all;
}

int set_cpu_thread_affinity(const CpuSet& thread_affinity_mask) {
    const int count = thread_affinity_mask.num_enabled();
    if (count == 0) {
        QUOLL_LOGE("[cpu] set_cpu_thread_affinity: expected at least one processor, got none");
        return kError;
    }
    topology();  // looks at the affinity this process was started with: before it changes
    int error = bind_this_thread(thread_affinity_mask);
    if (error == 0) error = bind_workers(thread_affinity_mask);
    if (error == 0) {
        set_thread_limit(paid(count));
        return kOk;
    }
    QUOLL_LOGE("[cpu] set_cpu_thread_affinity: the system refuses a set of %d processors: %s",
               count, std::strerror(error));
    return kError;
}

int set_omp_num_threads(int num_threads) {
    if (num_threads < 1) {
        QUOLL_LOGE("[cpu] set_omp_num_threads: expected at least 1, got %d", num_threads);
        return kError;
    }
    set_thread_limit(num_threads);
    return kOk;
}

int get_omp_num_threads() {
    if (region_threads() > 0) return region_threads();
    return QUOLL_THREADS ? get_thread_limit() > 0 ? get_thread_limit() : get_cpu_count() : 1;
}
int get_omp_dynamic() { return get_dynamic_threads(); }
void set_omp_dynamic(int dynamic) { set_dynamic_threads(dynamic != 0); }
int get_omp_thread_num() { return region_thread(); }

int get_kmp_blocktime() { return g_blocktime; }

int set_kmp_blocktime(int time_ms) {
    if (time_ms < 0) {
        QUOLL_LOGE("[cpu] set_kmp_blocktime: expected milliseconds, 0 or more, got %d", time_ms);
        return kError;
    }
    set_spin_limit(time_ms);
    g_blocktime = time_ms;
    return kOk;
}

namespace {

// The floating-point control register, and its bits of modes 1 (operands) and 2 (results).
#if defined(__x86_64__) || (defined(__i386__) && defined(__SSE2__))
using ControlRegister = uint32_t;  // MXCSR (Intel SDM vol. 1, 10.2.3)
constexpr ControlRegister kDenormalOperands = 1 << 6, kDenormalResults = 1 << 15;
ControlRegister read_control() {
    ControlRegister value;
    __asm__ volatile("stmxcsr %0" : "=m"(value));
    return value;
}
void write_control(ControlRegister value) { __asm__ volatile("ldmxcsr %0" : : "m"(value)); }
#elif defined(__aarch64__)
using ControlRegister = uint64_t;  // FPCR.FZ (Arm ARM, C5.2.8); FZ16 is left alone
constexpr ControlRegister kDenormalOperands = 1 << 24, kDenormalResults = 1 << 24;
ControlRegister read_control() {
    ControlRegister value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
void write_control(ControlRegister value) { __asm__ volatile("msr fpcr, %0" : : "r"(value)); }
#elif defined(__arm__) && defined(__ARM_FP)
// FPSCR.FZ for scalar arithmetic; vector arithmetic always flushes.
using ControlRegister = uint32_t;
constexpr ControlRegister kDenormalOperands = 1 << 24, kDenormalResults = 1 << 24;
ControlRegister read_control() {
    ControlRegister value;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(value));
    return value;
}
void write_control(ControlRegister value) { __asm__ volatile("vmsr fpscr, %0" : : "r"(value)); }
#else
using ControlRegister = uint32_t;
constexpr ControlRegister kDenormalOperands = 0, kDenormalResults = 0;
ControlRegister read_control() { return 0; }
void write_control(ControlRegister) {}
#endif

}  // namespace

int get_flush_denormals() {
    const ControlRegister value = read_control();
    return (value & kDenormalOperands ? 1 : 0) | (value & kDenormalResults ? 2 : 0);
}

int set_flush_denormals(int flush_denormals) {
    if (flush_denormals < 0 || flush_denormals > 3) {
        QUOLL_LOGE("[cpu] set_flush_denormals: expected 0..3, got %d", flush_denormals);
        return kError;
    }
    ControlRegister value = read_control() & ~(kDenormalOperands | kDenormalResults);
    if (flush_denormals & 1) value |= kDenormalOperands;
    if (flush_denormals & 2) value |= kDenormalResults;
    write_control(value);
    return kOk;
}

}  // namespace quoll
