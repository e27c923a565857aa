# quoll_processor: the processor that is built for. CMAKE_SYSTEM_PROCESSOR is empty when CMake builds for iOS without a toolchain file,
# and names the machine itself on macOS, whatever CMAKE_OSX_ARCHITECTURES asks for.
set(quoll_processor "${CMAKE_SYSTEM_PROCESSOR}")
if(APPLE AND CMAKE_OSX_ARCHITECTURES)
    list(LENGTH CMAKE_OSX_ARCHITECTURES count)
    if(count GREATER 1)
        message(FATAL_ERROR "CMAKE_OSX_ARCHITECTURES: expected one processor, got ${CMAKE_OSX_ARCHITECTURES}; build each by itself and join the libraries by lipo -create")
    endif()
    set(quoll_processor "${CMAKE_OSX_ARCHITECTURES}")
elseif(APPLE AND NOT quoll_processor)
    set(quoll_processor arm64)
endif()
