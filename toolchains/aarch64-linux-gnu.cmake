# 64-bit ARM Linux with Debian's g++-aarch64-linux-gnu; programs run under qemu-aarch64.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(quoll_triple aarch64-linux-gnu)
set(quoll_qemu aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
