# 64-bit little-endian POWER Linux with Debian's g++-powerpc64le-linux-gnu: the scalar kernels.
set(CMAKE_SYSTEM_PROCESSOR ppc64le)
set(quoll_triple powerpc64le-linux-gnu)
set(quoll_qemu ppc64le)
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
