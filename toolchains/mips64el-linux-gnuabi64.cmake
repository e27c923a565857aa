# 64-bit little-endian MIPS Linux with Debian's g++-mips64el-linux-gnuabi64: the scalar kernels.
set(CMAKE_SYSTEM_PROCESSOR mips64)
set(quoll_triple mips64el-linux-gnuabi64)
set(quoll_qemu mips64el)
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
