# iOS on devices with 64-bit processors, by Xcode's compiler; -DCMAKE_OSX_SYSROOT=iphonesimulator for the simulator.
set(CMAKE_SYSTEM_NAME iOS)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_ARCHITECTURES arm64 CACHE STRING "")
set(CMAKE_OSX_DEPLOYMENT_TARGET 13.0 CACHE STRING "")
