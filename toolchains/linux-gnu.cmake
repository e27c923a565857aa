# Cross builds with one of Debian's compilers; included by a toolchain file that has set quoll_triple (the compiler's
# prefix), CMAKE_SYSTEM_PROCESSOR and quoll_qemu (the processor in the emulator's name).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${quoll_triple}-gcc)
set(CMAKE_CXX_COMPILER ${quoll_triple}-g++)
set(CMAKE_FIND_ROOT_PATH /usr/${quoll_triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${quoll_qemu} -L /usr/${quoll_triple})
