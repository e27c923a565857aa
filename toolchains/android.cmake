# Android, by the NDK in the folder that the environment names; ANDROID_ABI is one of its four.
set(quoll_ndk $ENV{ANDROID_NDK}/build/cmake/android.toolchain.cmake)
if(NOT EXISTS ${quoll_ndk})
    message(FATAL_ERROR "ANDROID_NDK: expected the NDK's folder, got '$ENV{ANDROID_NDK}'")
endif()
set(ANDROID_PLATFORM android-24 CACHE STRING "the oldest system that programs run on")
include(${quoll_ndk})
