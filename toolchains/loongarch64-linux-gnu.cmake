# 64-bit LoongArch Linux with Debian 13's g++-loongarch64-linux-gnu: the scalar kernels.
set(CMAKE_SYSTEM_PROCESSOR loongarch64)
set(quoll_triple loongarch64-linux-gnu)
set(quoll_qemu loongarch64)
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
