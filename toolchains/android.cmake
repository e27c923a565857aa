# Android, by the NDK in the folder that the environment names; ANDROID_ABI is one of its four.
# Kept, so that later builds need no variable.
set(QUOLL_ANDROID_NDK "$ENV{ANDROID_NDK}" CACHE PATH "the NDK's folder")
set(quoll_ndk "${QUOLL_ANDROID_NDK}/build/cmake/android.toolchain.cmake")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES QUOLL_ANDROID_NDK)
if(NOT EXISTS ${quoll_ndk})
    message(FATAL_ERROR "ANDROID_NDK: expected the NDK's folder, got '${QUOLL_ANDROID_NDK}'")
endif()
set(ANDROID_PLATFORM android-24 CACHE STRING "the oldest system that programs run on")
include(${quoll_ndk})
