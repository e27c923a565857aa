// Processors, threads and floating-point modes: ncnn's functions of the same names.
#ifndef QUOLL_CPU_H
#define QUOLL_CPU_H

#include <stdint.h>

#if defined(__linux__)
#include <sched.h>
#endif

namespace quoll {

// Processors are numbered 0..kMaxCpus-1, as by the operating system.
#if defined(__linux__)
enum { kMaxCpus = CPU_SETSIZE };
#else
enum { kMaxCpus = 1024 };
#endif

// A set of processors; empty at first.
class CpuSet {
public:
    CpuSet();
    // 0, or -1 for a number out of range, which changes nothing.
    int enable(int cpu);
    int disable(int cpu);
    void disable_all();
    bool is_enabled(int cpu) const;  // false for a number out of range
    int num_enabled() const;
    bool operator==(const CpuSet& other) const;

#if defined(__linux__)
    // For the system's functions.
    cpu_set_t cpu_set;
#else
private:
    uint64_t words_[kMaxCpus / 64];
#endif
};

// 1 if the processor has the feature and QUOLL_CPU_MASK and set_cpu_mask() leave it on; otherwise
// 0, as for features of another architecture.
int cpu_support_arm_neon();
int cpu_support_arm_vfpv4();  // every 64-bit ARM has it
int cpu_support_arm_asimdhp();
int cpu_support_arm_asimddp();
int cpu_support_arm_asimdfhm();
int cpu_support_arm_bf16();
int cpu_support_arm_i8mm();
int cpu_support_arm_sve();
int cpu_support_arm_sve2();
int cpu_support_arm_svebf16();
int cpu_support_arm_svei8mm();
int cpu_support_arm_svef32mm();
int cpu_support_x86_avx();
int cpu_support_x86_fma();
int cpu_support_x86_f16c();
int cpu_support_x86_avx2();  // with FMA and F16C
int cpu_support_x86_avx_vnni();
int cpu_support_x86_avx_vnni_int8();
int cpu_support_x86_avx_vnni_int16();
int cpu_support_x86_avx_ne_convert();
int cpu_support_x86_avx512();  // F, CD, BW, DQ and VL
int cpu_support_x86_avx512_vnni();
int cpu_support_x86_avx512_bf16();
int cpu_support_x86_avx512_fp16();
int cpu_support_x86_amx_int8();  // with tiles that the operating system has granted
int cpu_support_x86_amx_bf16();
int cpu_support_riscv_v();

// The number of logical processors, and of physical cores, that this process may run on: those of
// its affinity mask when the library first looked, limited by cgroup CPU quotas (rounded up). At
// least 1; of little ones at least 0. Big and little clusters differ in capacity or top frequency;
// if all cores are equal, all are big.
int get_cpu_count();
int get_little_cpu_count();
int get_big_cpu_count();
int get_physical_cpu_count();
int get_physical_little_cpu_count();
int get_physical_big_cpu_count();

// Bytes of cache that a big core can use, shared or its own; 0 if it has no such level. If the
// system does not tell: 32 KiB, 512 KiB and 0.
int get_cpu_level1_cache_size();  // data
int get_cpu_level2_cache_size();
int get_cpu_level3_cache_size();

// Binds the calling thread and its workers to processors: 0 all of them (the initial mode), 1 the
// little ones, 2 the big ones. If all cores are equal, the three are the same. Returns 0, or -1 for
// another value or if the system cannot bind threads. The getter returns the mode that was set last
// in the process.
int get_cpu_powersave();
int set_cpu_powersave(int powersave);

// The processors of a powersave mode; those of mode 0, after an error in the log, for another
// value.
const CpuSet& get_cpu_thread_affinity_mask(int powersave);

// Binds the calling thread and its workers to the mask, and limits the threads of its layers to the
// number of processors in the mask. Returns 0, or -1 if the mask is empty, or if the system refuses
// it or cannot bind.
int set_cpu_thread_affinity(const CpuSet& thread_affinity_mask);

// The threads of the library (it has its own; the names are ncnn's). Built without threads: one,
// and setters that only check their argument.
// The number of threads: within a layer, that of the layer; otherwise the limit for layers that the
// calling thread runs, whatever opt.num_threads says. Initially the number of processors, which
// limits nothing.
int get_omp_num_threads();
int set_omp_num_threads(int num_threads);  // 0, or -1 for less than 1
// Whether threads that are often late, as on processors with other work, are left out for a while:
// 1 initially. Each calling thread has its own setting.
int get_omp_dynamic();
void set_omp_dynamic(int dynamic);
int get_omp_thread_num();

// Milliseconds that idle workers spin before they sleep: at most 0.1, whatever is set; with 0 they
// do not spin. The setter returns 0, or -1 for a negative time.
int get_kmp_blocktime();
int set_kmp_blocktime(int time_ms);

// Treatment of denormal floats in the calling thread: bit 0 takes denormal operands as zero (DAZ),
// bit 1 denormal results (FTZ). 64-bit ARM has one switch for both: any mode except 0 becomes 3.
// Elsewhere the mode is always 0. The setter returns 0, or -1 for a value outside 0..3.
int get_flush_denormals();
int set_flush_denormals(int flush_denormals);

}  // namespace quoll

#endif  // QUOLL_CPU_H
