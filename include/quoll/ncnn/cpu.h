#ifndef NCNN_CPU_H
#define NCNN_CPU_H

#include <stddef.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include "platform.h"
#include "quoll/cpu.h"

namespace ncnn {

// Instruction sets that quoll has no kernels for.
inline int cpu_support_arm_edsp() { return 0; }
inline int cpu_support_x86_xop() { return 0; }
inline int cpu_support_loongarch_lsx() { return 0; }
inline int cpu_support_loongarch_lasx() { return 0; }
inline int cpu_support_mips_msa() { return 0; }
inline int cpu_support_loongson_mmi() { return 0; }
inline int cpu_support_riscv_zfh() { return 0; }
inline int cpu_support_riscv_zvfh() { return 0; }
inline int cpu_support_riscv_xtheadvector() { return 0; }
inline int cpu_riscv_vlenb() { return 0; }
// quoll asks the system which core it is on, and picks kernels by that itself.
inline int cpu_support_arm_cpuid() { return 0; }
inline int is_current_thread_running_on_a53_a55() { return 0; }

}  // namespace ncnn

#endif
