# 32-bit little-endian MIPS Linux with Debian's g++-mipsel-linux-gnu: the scalar kernels.
set(CMAKE_SYSTEM_PROCESSOR mips)
set(quoll_triple mipsel-linux-gnu)
set(quoll_qemu mipsel)
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
