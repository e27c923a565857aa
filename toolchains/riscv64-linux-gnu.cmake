# 64-bit RISC-V Linux with Debian's g++-riscv64-linux-gnu: the scalar kernels.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(quoll_triple riscv64-linux-gnu)
set(quoll_qemu riscv64)
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
