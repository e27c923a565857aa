# Instruction sets: the only place with ISA names and compiler flags.
#
# A kernel source is compiled once for every ISA in QUOLL_ISAS. It sees
#   QUOLL_ISA_NAME       the ISA as a token, to build names such as gemm_kernels_avx512
#   QUOLL_ISA_LANES      floats in a vector register
#   QUOLL_ISA_REGISTERS  number of vector registers
#   QUOLL_HWY_TARGET     the Highway target that the flags must select (checked in simd/vec.h)
# Everything that such an object defines must be local to it, except its kernel table: a weak
# (inline, template) symbol could be the copy that the linker keeps for the whole program, and it
# would hold instructions that the machine may lack. tests/check_isa_symbols.cmake looks for them.

# Rows: flags, lanes, registers, Highway target. `scalar` has the compiler's own baseline and is always built.
set(quoll_isa_row_scalar "-DHWY_COMPILE_ONLY_SCALAR|1|16|HWY_SCALAR")
set(quoll_isa_row_sse4 "-mssse3 -msse4.1 -msse4.2 -mpopcnt -mcx16|4|16|HWY_SSE4")
set(quoll_isa_v3 "-mavx -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mmovbe -mpopcnt -mcx16")
set(quoll_isa_row_avx2 "${quoll_isa_v3}|8|16|HWY_AVX2")
set(quoll_isa_row_avx512
    "${quoll_isa_v3} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd|16|32|HWY_AVX3")
# Highway's NEON functions carry the crypto attribute and are inlined only into code that has it.
# None of its crypto functions is called, so no such instruction is emitted.
set(quoll_isa_row_neon "-march=armv8-a+crypto|4|32|HWY_NEON")
# 32-bit ARM: with fused multiply-adds (VFPv4), as Cortex-A7, A15 and all later processors have them, or without (QUOLL_ARM_FMA).
set(quoll_arm32 OFF)
if(quoll_processor MATCHES "^(armv[78].*|armhf)$" AND CMAKE_SIZEOF_VOID_P EQUAL 4)
    set(quoll_arm32 ON)
    set(quoll_arm_fpu neon-vfpv4)
    if(NOT QUOLL_ARM_FMA)
        set(quoll_arm_fpu neon)
    endif()
    # clang takes units by -mfpu alone, and has no other half floats than IEEE's.
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
        set(quoll_isa_row_neon "-march=armv7-a -mfpu=${quoll_arm_fpu}|4|16|HWY_NEON")
    else()
        set(quoll_isa_row_neon "-march=armv7-a -mfpu=${quoll_arm_fpu} -mfp16-format=ieee|4|16|HWY_NEON")
    endif()
endif()
set(quoll_isa_row_simd128 "-msimd128|4|16|HWY_WASM")
# clang's own vectors (simd/vector_extensions.h). V has 128 bits at least, of which these kernels use 128.
set(quoll_isa_row_rvv "-march=rv64gcv -DHWY_COMPILE_ONLY_EMU128|4|32|HWY_EMU128")

# For all ISAs.
# - HWY_DISABLE_PCLMUL_AES: the x86 levels above do not include AES; without this Highway would fall
#   back to SSSE3.
# - ffp-contract=off: a fused multiply-add only where the source says fma(), so that a formula rounds
#   the same way on every compiler.
# - QUOLL_SMALL_KERNELS, O3, also where all else is to be small: that is where the time goes. With Os kernels for
#   certain cases that others take as well are left out (QUOLL_FEW_KERNELS).
# - No unwind tables but in debug builds: kernels call nothing that throws.
# - O2 also in debug builds: at O0 the wrappers cost 100 times the kernel, and inline functions of
#   the standard library would be emitted as weak symbols.
set(QUOLL_SMALL_KERNELS "O3" CACHE STRING "how a small library (MinSizeRel) has its kernels compiled: O3, O2, Os")
set(quoll_isa_common -fno-exceptions -fno-rtti -fno-math-errno -ffp-contract=off
    -DHWY_DISABLE_PCLMUL_AES $<$<CONFIG:Debug>:-O2> $<$<CONFIG:MinSizeRel>:-${QUOLL_SMALL_KERNELS}>)
if(QUOLL_SMALL_KERNELS STREQUAL Os)
    add_compile_definitions($<$<CONFIG:MinSizeRel>:QUOLL_FEW_KERNELS>)
endif()
foreach(config Release MinSizeRel)
    list(APPEND quoll_isa_common $<$<CONFIG:${config}>:-fno-asynchronous-unwind-tables> $<$<CONFIG:${config}>:-fno-unwind-tables>)
endforeach()
# Highway's own checks, which sanitizers turn on, call a function of its library, which is not linked.
if(QUOLL_SANITIZE)
    list(APPEND quoll_isa_common -DHWY_IS_DEBUG_BUILD=0)
endif()

if(quoll_processor MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(quoll_all_isas scalar sse4 avx2 avx512)
elseif(quoll_processor MATCHES "^(aarch64|arm64|ARM64)$")
    set(quoll_all_isas scalar neon)
elseif(quoll_arm32)
    set(quoll_all_isas scalar neon)
elseif(EMSCRIPTEN)
    set(quoll_all_isas scalar simd128)
elseif(quoll_processor STREQUAL riscv64)
    # Older clang knows the flag, but takes the vectors apart.
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS -march=rv64gcv)
    check_cxx_source_compiles("#if !defined(__clang__) || __clang_major__ < 16\n#error none\n#endif\nint main() {}"
        QUOLL_COMPILER_HAS_rvv)
    unset(CMAKE_REQUIRED_FLAGS)
    set(quoll_all_isas scalar)
    if(QUOLL_COMPILER_HAS_rvv)
        list(APPEND quoll_all_isas rvv)
    endif()
else()
    set(quoll_all_isas scalar)
endif()
set(QUOLL_ISAS "${quoll_all_isas}" CACHE STRING "instruction sets to build kernels for")
foreach(isa IN LISTS QUOLL_ISAS)
    if(NOT isa IN_LIST quoll_all_isas)
        message(FATAL_ERROR "QUOLL_ISAS: '${isa}' is not one of: ${quoll_all_isas}")
    endif()
endforeach()
# Scalar kernels are needed unless every machine that the compiler builds for has vectors.
set(quoll_enabled_isas scalar)
if(NOT scalar IN_LIST QUOLL_ISAS AND QUOLL_ISAS)
    if(quoll_arm32)
        include(CheckCXXSourceCompiles)
        if(QUOLL_ARM_FMA)
            check_cxx_source_compiles("#if !defined(__ARM_NEON) || !defined(__ARM_FEATURE_FMA)\n#error none\n#endif\nint main() {}" QUOLL_COMPILER_HAS_neon)
        else()
            check_cxx_source_compiles("#if !defined(__ARM_NEON)\n#error none\n#endif\nint main() {}" QUOLL_COMPILER_HAS_neon_alone)
            set(QUOLL_COMPILER_HAS_neon ${QUOLL_COMPILER_HAS_neon_alone})
        endif()
    elseif(NOT quoll_all_isas MATCHES "sse4|rvv")
        set(QUOLL_COMPILER_HAS_neon ON)
    endif()
    if(QUOLL_COMPILER_HAS_neon)
        set(quoll_enabled_isas "")
    endif()
endif()
set(quoll_small_scalar OFF)
foreach(isa IN LISTS quoll_all_isas)  # in ascending order
    if(isa IN_LIST QUOLL_ISAS AND NOT isa STREQUAL scalar)
        list(APPEND quoll_enabled_isas ${isa})
        # What runs where nothing better does need not be large. Processors without V are common, though.
        if(NOT isa STREQUAL rvv)
            set(quoll_small_scalar ON)
        endif()
    endif()
endforeach()

# Highway is header-only here. The headers are the same for every architecture; a cross build must
# not see the rest of the host's /usr/include, hence a folder that holds nothing but a link.
find_path(QUOLL_HWY_INCLUDE_DIR hwy/highway.h PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH
    DOC "folder that holds hwy/highway.h (Debian: libhwy-dev)")
if(NOT QUOLL_HWY_INCLUDE_DIR)
    message(FATAL_ERROR "hwy/highway.h not found: install libhwy-dev or set QUOLL_HWY_INCLUDE_DIR")
endif()
set(quoll_hwy_include ${QUOLL_GENERATED_DIR}/hwy_include)
file(MAKE_DIRECTORY ${quoll_hwy_include})
file(CREATE_LINK ${QUOLL_HWY_INCLUDE_DIR}/hwy ${quoll_hwy_include}/hwy SYMBOLIC)

# generated/isa_list.inc: QUOLL_ISA(name, lanes) for each ISA built, ascending.
set(quoll_isa_list "")
foreach(isa IN LISTS quoll_enabled_isas)
    string(REPLACE "|" ";" row "${quoll_isa_row_${isa}}")
    list(GET row 1 lanes)
    string(APPEND quoll_isa_list "QUOLL_ISA(${isa}, ${lanes})\n")
endforeach()
file(CONFIGURE OUTPUT ${QUOLL_GENERATED_DIR}/isa_list.inc CONTENT "${quoll_isa_list}" @ONLY)

# quoll_add_isa_objects(target sources...): compiles the sources once per ISA. The objects are
# appended to the caller's variable quoll_isa_objects and, if the target links (is no object
# library), become part of it.
function(quoll_add_isa_objects target)
    list(TRANSFORM ARGN REPLACE "^([^/].*)$" "${CMAKE_CURRENT_SOURCE_DIR}/\\1" OUTPUT_VARIABLE sources)
    set(objects ${quoll_isa_objects})
    foreach(isa IN LISTS quoll_enabled_isas)
        string(REPLACE "|" ";" row "${quoll_isa_row_${isa}}")
        list(GET row 0 flags)
        list(GET row 1 lanes)
        list(GET row 2 registers)
        list(GET row 3 hwy_target)
        separate_arguments(flags)
        set(library ${target}_${isa})
        add_library(${library} OBJECT ${sources})
        target_compile_options(${library} PRIVATE ${flags} ${quoll_isa_common}
            $<$<STREQUAL:${isa},scalar>:-fno-tree-vectorize>
            $<$<AND:$<CONFIG:Release,MinSizeRel>,$<STREQUAL:${isa},scalar>,$<BOOL:${quoll_small_scalar}>>:-Os>)
        target_compile_definitions(${library} PRIVATE
            QUOLL_ISA_NAME=${isa} QUOLL_ISA_LANES=${lanes} QUOLL_ISA_REGISTERS=${registers}
            QUOLL_HWY_TARGET=${hwy_target})
        target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/src)
        target_include_directories(${library} SYSTEM PRIVATE ${quoll_hwy_include})
        target_link_libraries(${library} PRIVATE quoll_warnings)
        set_property(GLOBAL APPEND PROPERTY quoll_isa_object_libraries ${library})
        list(APPEND objects $<TARGET_OBJECTS:${library}>)
    endforeach()
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL OBJECT_LIBRARY)
        target_sources(${target} PRIVATE ${objects})
    endif()
    set(quoll_isa_objects ${objects} PARENT_SCOPE)
endfunction()

# Hand kernels for units that not every machine of a level has (src/layer/x86): compiled once, with
# the flags of a level and those of the units. Their symbols end in the name of the units.
include(CheckCXXCompilerFlag)
# gcc 12's intrinsics start from `__m512 y = y;` and are blamed for it.
set(quoll_intrinsics_options "$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized;-Wno-maybe-uninitialized>")
set(quoll_amx_flags ${quoll_isa_v3} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd
    -mavx512bf16)
separate_arguments(quoll_amx_flags)
set(quoll_have_amx OFF)
if("avx512" IN_LIST quoll_enabled_isas AND QUOLL_TILE_UNITS)
    check_cxx_compiler_flag("-mamx-tile -mamx-bf16 -mamx-int8 -mavx512bf16" QUOLL_COMPILER_HAS_AMX)
    set(quoll_have_amx ${QUOLL_COMPILER_HAS_AMX})
endif()

# quoll_add_amx_objects(target sources...): adds the sources, compiled for AMX, to the target and the
# caller's quoll_isa_objects; nothing where the compiler or QUOLL_ISAS is without.
function(quoll_add_amx_objects target)
    if(NOT quoll_have_amx)
        return()
    endif()
    set(library ${target}_amx)
    add_library(${library} OBJECT ${ARGN})
    target_compile_options(${library} PRIVATE ${quoll_amx_flags} -mamx-tile -mamx-bf16
        -mamx-int8 ${quoll_isa_common} ${quoll_intrinsics_options})
    target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${library} PRIVATE quoll_warnings)
    set_property(GLOBAL APPEND PROPERTY quoll_isa_object_libraries ${library})
    set(quoll_isa_objects ${quoll_isa_objects} $<TARGET_OBJECTS:${library}> PARENT_SCOPE)
endfunction()

# Kernels for instructions that some machines of a level have: of these names, or all that the compiler knows.
set(QUOLL_EXTENSIONS "all" CACHE STRING "kernels beyond the levels to build, as asimddp;asimdhp; empty: none")
function(quoll_wants_extension name result)
    set(${result} OFF PARENT_SCOPE)
    if(QUOLL_EXTENSIONS STREQUAL "all" OR name IN_LIST QUOLL_EXTENSIONS)
        set(${result} ON PARENT_SCOPE)
    endif()
endfunction()

# Instructions beyond a level that kernels are compiled for once more: name|level|flag.
set(quoll_dot_variants "")
set(quoll_bf16_variants "")
set(quoll_f16_variants "")
foreach(variant "avxvnni|avx2|-mavxvnni" "avx512vnni|avx512|-mavx512vnni"
    "avx512bf16|avx512|-mavx512bf16" "asimddp|neon|-march=armv8.2-a+dotprod+crypto"
    "asimdhp|neon|-march=armv8.2-a+fp16+crypto")
    string(REPLACE "|" ";" row "${variant}")
    list(GET row 0 name)
    list(GET row 1 level)
    list(GET row 2 flag)
    quoll_wants_extension(${name} wanted)
    if(wanted AND level IN_LIST quoll_enabled_isas AND NOT quoll_arm32)
        check_cxx_compiler_flag(${flag} QUOLL_COMPILER_HAS_${name})
        if(QUOLL_COMPILER_HAS_${name})
            if(name MATCHES "vnni|asimddp")
                list(APPEND quoll_dot_variants "${variant}")
            elseif(name STREQUAL asimdhp)
                list(APPEND quoll_f16_variants "${variant}")
            else()
                list(APPEND quoll_bf16_variants "${variant}")
            endif()
        endif()
    endif()
endforeach()

# quoll_add_variant_objects(target variants sources...): adds the sources, compiled for each variant of the list of
# that name, to the caller's quoll_isa_objects. Their tables end in the variant's name, as those of levels do.
function(quoll_add_variant_objects target variants)
    set(objects ${quoll_isa_objects})
    foreach(variant IN LISTS ${variants})
        string(REPLACE "|" ";" variant "${variant}")
        list(GET variant 0 name)
        list(GET variant 1 level)
        list(GET variant 2 flag)
        string(REPLACE "|" ";" row "${quoll_isa_row_${level}}")
        list(GET row 0 flags)
        list(GET row 1 lanes)
        list(GET row 2 registers)
        list(GET row 3 hwy_target)
        separate_arguments(flags)
        set(library ${target}_${name})
        add_library(${library} OBJECT ${ARGN})
        target_compile_options(${library} PRIVATE ${flags} ${flag} ${quoll_isa_common})
        target_compile_definitions(${library} PRIVATE
            QUOLL_ISA_NAME=${name} QUOLL_ISA_LANES=${lanes} QUOLL_ISA_REGISTERS=${registers}
            QUOLL_HWY_TARGET=${hwy_target})
        target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/src)
        target_include_directories(${library} SYSTEM PRIVATE ${quoll_hwy_include})
        target_link_libraries(${library} PRIVATE quoll_warnings)
        set_property(GLOBAL APPEND PROPERTY quoll_isa_object_libraries ${library})
        list(APPEND objects $<TARGET_OBJECTS:${library}>)
    endforeach()
    set(quoll_isa_objects ${objects} PARENT_SCOPE)
endfunction()

# What of the above there is, for kernel_rows.inc: QUOLL_BUILT_avx512vnni=1 and so on.
set(quoll_built_definitions "")
set_property(GLOBAL PROPERTY quoll_isa_names ${quoll_enabled_isas})
foreach(variant IN LISTS quoll_dot_variants quoll_bf16_variants quoll_f16_variants)
    string(REGEX REPLACE "\\|.*" "" name "${variant}")
    list(APPEND quoll_built_definitions QUOLL_BUILT_${name}=1)
    set_property(GLOBAL APPEND PROPERTY quoll_isa_names ${name})
endforeach()
if(quoll_have_amx)
    list(APPEND quoll_built_definitions QUOLL_BUILT_amx=1)
    set_property(GLOBAL APPEND PROPERTY quoll_isa_names amx)
endif()

# Instructions that assembly may have: name|level|flag. What a level's own flags allow needs none.
# a55: neon, asimdhp and asimddp tuned for cores that issue in order.
set(quoll_assembly_isas "neon|neon|" "a55|neon|-march=armv8.2-a+fp16+dotprod" "asimdhp|neon|-march=armv8.2-a+fp16" "sve|neon|-march=armv8.2-a+sve"
    "asimddp|neon|-march=armv8.2-a+dotprod" "i8mm|neon|-march=armv8.2-a+i8mm"
    "svei8mm|neon|-march=armv8.2-a+sve+i8mm"
    "bf16|neon|-march=armv8.2-a+bf16" "asimdfhm|neon|-march=armv8.2-a+fp16fml" "sme|neon|-march=armv8.2-a+sve")
if(quoll_arm32)
    set(quoll_assembly_isas "neon32|neon|")
endif()
set_property(GLOBAL PROPERTY quoll_assembly_isas ${quoll_assembly_isas})

# quoll_add_assembly(target files...): assembles those .S files whose names end in the name of an ISA that is built,
# as gemm_f32_5x16_neon.S does, and adds them to the caller's quoll_isa_objects.
function(quoll_add_assembly target)
    set(objects ${quoll_isa_objects})
    foreach(row IN LISTS quoll_assembly_isas)
        string(REPLACE "|" ";" row "${row}")
        list(GET row 0 isa)
        list(GET row 1 level)
        list(GET row 2 flag)
        set(own ${ARGN})
        list(FILTER own INCLUDE REGEX "_${isa}\\.S$")
        quoll_wants_extension(${isa} wanted)
        if(isa STREQUAL level)
            set(wanted ON)
        endif()
        if(NOT own OR NOT wanted OR NOT level IN_LIST quoll_enabled_isas)
            continue()
        endif()
        set(library ${target}_${isa}_assembly)
        add_library(${library} OBJECT ${own})
        target_compile_options(${library} PRIVATE ${flag})
        target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/src)
        list(APPEND objects $<TARGET_OBJECTS:${library}>)
        set_property(GLOBAL APPEND PROPERTY quoll_isa_object_libraries ${library})
        set_property(GLOBAL APPEND PROPERTY quoll_built_definitions QUOLL_BUILT_${isa}_assembly=1)
        get_property(names GLOBAL PROPERTY quoll_isa_names)
        if(NOT isa IN_LIST names)
            set_property(GLOBAL APPEND PROPERTY quoll_isa_names ${isa})
        endif()
    endforeach()
    set(quoll_isa_objects ${objects} PARENT_SCOPE)
endfunction()

set_property(GLOBAL PROPERTY quoll_built_definitions ${quoll_built_definitions})
