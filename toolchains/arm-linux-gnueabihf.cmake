# 32-bit ARM Linux (ARMv7-A, arguments in VFP registers) with Debian's g++-arm-linux-gnueabihf.
set(CMAKE_SYSTEM_PROCESSOR armv7)
set(quoll_triple arm-linux-gnueabihf)
set(quoll_qemu arm)
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
