# 32-bit ARM Linux without VFP arguments (ARMv5TE and later, soft float) with Debian's g++-arm-linux-gnueabi: the scalar kernels.
set(CMAKE_SYSTEM_PROCESSOR armv5)
set(quoll_triple arm-linux-gnueabi)
set(quoll_qemu arm)
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
