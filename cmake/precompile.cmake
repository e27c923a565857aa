# Precompiled headers where builds of one configuration share them (QUOLL_GENERATED_DIR). CMake's own are in the build tree: from ccache,
# which hashes their path, a build in another one, as that of the Python package is, would get nothing that this one has compiled.

# quoll_precompile(target headers...): the target's sources begin with the headers: <file>, or a file of the project. Each level of
# optimisation has a header of its own: GCC takes one of -O3 for -O2, but compiles other code then. Sources with -frtti have none.
# Sources include what they use all the same: other compilers and small builds go without.
function(quoll_precompile target)
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_GENERATOR MATCHES "Ninja" OR CMAKE_DISABLE_PRECOMPILE_HEADERS
            OR CMAKE_BUILD_TYPE STREQUAL "MinSizeRel")
        return()
    endif()
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cpp$")
    foreach(source IN LISTS sources)
        get_source_file_property(options ${source} COMPILE_OPTIONS)
        if(options MATCHES "-frtti")
            continue()
        endif()
        string(REGEX MATCH "-(O[12s])" level "${options}")
        set(name ${target}_header)
        if(level)
            set(name ${target}_header_${CMAKE_MATCH_1})
        endif()
        if(NOT TARGET ${name})
            quoll_add_header(${target} ${name} ${ARGN})
            target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${level}>)
        endif()
        set(header ${QUOLL_GENERATED_DIR}/precompiled/${name}.h)
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -include ${header})
        set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS ${header}.gch)
    endforeach()
endfunction()

# The object library `name` of a file with the headers, compiled as the target is, and its copy that GCC looks for.
function(quoll_add_header target name)
    list(TRANSFORM ARGN REPLACE "^([^<].*)$" "\"\\1\"" OUTPUT_VARIABLE names)
    string(REPLACE ";" "\n#include " text "#include ${names}\n")
    set(header ${QUOLL_GENERATED_DIR}/precompiled/${name}.h)
    file(CONFIGURE OUTPUT ${header} CONTENT "${text}" @ONLY)
    file(CONFIGURE OUTPUT ${header}.cxx CONTENT "${text}" @ONLY)
    set_source_files_properties(${header}.cxx PROPERTIES COMPILE_OPTIONS "-x;c++-header")
    add_library(${name} OBJECT ${header}.cxx)
    foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_LIBRARIES)
        get_target_property(value ${target} ${property})
        if(value)
            set_property(TARGET ${name} PROPERTY ${property} ${value})
        endif()
    endforeach()
    add_custom_command(OUTPUT ${header}.gch DEPENDS ${name} $<TARGET_OBJECTS:${name}> VERBATIM
        COMMAND ${CMAKE_COMMAND} -E ${QUOLL_COPY_GENERATED} $<TARGET_OBJECTS:${name}> ${header}.gch)
endfunction()
