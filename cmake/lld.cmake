# The shared library by LLVM's linker: packed relocations (QUOLL_PACK_RELOCATIONS), optimisation at link time (QUOLL_LTO), and one copy
# of equal functions where all is to be small.
find_program(QUOLL_LLD NAMES ld.lld-19 ld.lld REQUIRED)

# quoll_link_by_lld(target)
function(quoll_link_by_lld target)
    execute_process(COMMAND ${QUOLL_LLD} --version OUTPUT_VARIABLE version)
    string(REGEX REPLACE ".*LLD ([0-9]+).*" "\\1" version "${version}")
    file(REAL_PATH ${QUOLL_LLD} lld)
    get_filename_component(folder ${lld} DIRECTORY)
    target_link_options(${target} PRIVATE -fuse-ld=lld -B${folder} $<$<CONFIG:MinSizeRel>:-Wl,--icf=all>)
    # glibc refuses relocations in DT_RELR without the version GLIBC_ABI_DT_RELR, which this asks for.
    if(QUOLL_PACK_RELOCATIONS STREQUAL relr AND version GREATER_EQUAL 15 AND NOT ANDROID)
        target_link_options(${target} PRIVATE -Wl,-z,pack-relative-relocs)
    elseif(QUOLL_PACK_RELOCATIONS)
        target_link_options(${target} PRIVATE -Wl,--pack-dyn-relocs=${QUOLL_PACK_RELOCATIONS})
    endif()
    if(QUOLL_LTO)
        if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17 OR version LESS 17)
            message(FATAL_ERROR "QUOLL_LTO needs clang and lld, 17 or later: got ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} and lld ${version}")
        endif()
        target_link_options(${target} PRIVATE -flto -ffat-lto-objects $<$<CONFIG:MinSizeRel>:-Wl,-mllvm,-machine-outliner-reruns=2>)
    endif()
endfunction()
