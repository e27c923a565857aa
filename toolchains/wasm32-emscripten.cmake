# WebAssembly by Emscripten: Debian's package, or the SDK whose emsdk_env.sh has been sourced.
find_path(QUOLL_EMSCRIPTEN cmake/Modules/Platform/Emscripten.cmake
    PATHS $ENV{EMSDK}/upstream/emscripten /usr/share/emscripten NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
if(NOT QUOLL_EMSCRIPTEN)
    message(FATAL_ERROR "Emscripten is missing: install the package emscripten, or source emsdk_env.sh")
endif()
set(EMSCRIPTEN_SYSTEM_PROCESSOR wasm32)
include(${QUOLL_EMSCRIPTEN}/cmake/Modules/Platform/Emscripten.cmake)
# Programs run under node, on its files.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fexceptions -sALLOW_MEMORY_GROWTH=1")
