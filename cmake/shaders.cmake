# Compiles the rows of layer/vulkan/shader/variants.inc to SPIR-V and makes spirv/shaders.inc of them.
option(QUOLL_VULKAN "run layers on GPUs through Vulkan" ON)
if(QUOLL_VULKAN)
    find_path(QUOLL_VULKAN_HEADERS vulkan/vulkan.h)
    find_program(QUOLL_GLSLANG glslangValidator)
    mark_as_advanced(QUOLL_VULKAN_HEADERS QUOLL_GLSLANG)
    if(NOT QUOLL_VULKAN_HEADERS OR NOT QUOLL_GLSLANG)
        message(STATUS "no vulkan/vulkan.h (libvulkan-dev) or no glslangValidator (glslang-tools): QUOLL_VULKAN is OFF")
        set(QUOLL_VULKAN OFF)
    endif()
endif()

# quoll_compile_shaders(folder output): a custom command for each row
#   QUOLL_SHADER(name, algorithm, "storage types", "defines")
# and storage type, of <folder>/<algorithm>.comp; sets quoll_shader_outputs to the files that they write.
function(quoll_compile_shaders folder output)
    set(list ${folder}/variants.inc)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
    file(GLOB common CONFIGURE_DEPENDS ${folder}/common/*.glsl)
    file(STRINGS ${list} rows REGEX "^QUOLL_SHADER")
    set(includes "")
    set(table "")
    set(outputs "")
    foreach(row IN LISTS rows)
        if(NOT row MATCHES "^QUOLL_SHADER\\(([a-z0-9_]+), ([a-z0-9_]+), \"([a-z0-9 ]+)\", \"([A-Za-z0-9_= ]*)\"\\)$")
            message(FATAL_ERROR "${list}: cannot read '${row}'")
        endif()
        set(name ${CMAKE_MATCH_1})
        set(algorithm ${CMAKE_MATCH_2})
        string(REPLACE " " ";" types "${CMAKE_MATCH_3}")
        string(REGEX REPLACE "([^ ]+)" "-D\\1" defines "${CMAKE_MATCH_4}")
        separate_arguments(defines)
        set(codes "")
        foreach(type f32 f16)
            if(NOT type IN_LIST types)
                string(APPEND codes "{nullptr, 0}, ")
                continue()
            endif()
            string(TOUPPER ${type} TYPE)
            set(array kSpirv_${name}_${type})
            set(file ${output}/${name}_${type}.inc)
            add_custom_command(OUTPUT ${file}
                COMMAND ${QUOLL_GLSLANG} --quiet --target-env vulkan1.1 -g0 -S comp -I${folder}/common -DSTORAGE_${TYPE}=1 ${defines}
                    --vn ${array} -o ${file} ${folder}/${algorithm}.comp
                DEPENDS ${folder}/${algorithm}.comp ${common} VERBATIM)
            list(APPEND outputs ${file})
            string(APPEND includes "#include \"spirv/${name}_${type}.inc\"\n")
            string(APPEND codes "{${array}, sizeof(${array})}, ")
        endforeach()
        string(APPEND table "    {\"${name}\", {${codes}}},\n")
    endforeach()
    file(CONFIGURE OUTPUT ${output}/shaders.inc CONTENT "${includes}
struct ShaderRow {
    const char* name;
    ShaderCode code[2];
};
const ShaderRow kShaders[] = {
${table}};
" @ONLY)
    set(quoll_shader_outputs ${outputs} PARENT_SCOPE)
endfunction()
