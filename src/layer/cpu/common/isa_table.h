// QUOLL_ISA_TABLE(gemm_kernels) is gemm_kernels_avx512 where a source is compiled for avx512.
#ifndef QUOLL_LAYER_CPU_ISA_TABLE_H
#define QUOLL_LAYER_CPU_ISA_TABLE_H

#define QUOLL_ISA_TABLE(name) QUOLL_ISA_TABLE_1(name, QUOLL_ISA_NAME)
#define QUOLL_ISA_TABLE_1(name, isa) QUOLL_ISA_TABLE_2(name, isa)
#define QUOLL_ISA_TABLE_2(name, isa) name##_##isa

#endif
