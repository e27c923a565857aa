# The shared library's symbols: those that the headers of include/quoll declare. Without this every function that one
# file takes from another would be one, a sixth of the library.
#
# What is private to a class is in a Private of it. A library without GPUs and without ncnn's names has none of the classes that
# record work for a GPU, and no device to have objects of; one without texts not the functions that compute what a text says.
#
# quoll_write_exports(file): writes a version script for GNU ld and lld. A header's declarations begin in the first column,
# as .clang-format has them.
function(quoll_write_exports file)
    file(GLOB headers CONFIGURE_DEPENDS ${quoll_public}/quoll/*.h)
    if(NOT QUOLL_VULKAN AND NOT QUOLL_NCNN)
        list(FILTER headers EXCLUDE REGEX "/(command|pipeline|vkmat|vulkan_[a-z]*|glsl)\\.h$")
    endif()
    if(NOT QUOLL_STRING)
        list(FILTER headers EXCLUDE REGEX "/expression\\.h$")
    endif()
    set(classes "")
    set(functions "")
    foreach(header IN LISTS headers)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
        file(STRINGS ${header} lines REGEX "^[A-Za-z]")
        foreach(line IN LISTS lines)
            if(line MATCHES "^(class|struct) ([A-Za-z0-9_]+)[^;]*$")
                list(APPEND classes ${CMAKE_MATCH_2})
            elseif(line MATCHES "^[A-Za-z][^(=]*[ *&]([A-Za-z0-9_]+)\\(")
                list(APPEND functions ${CMAKE_MATCH_1})
            endif()
        endforeach()
    endforeach()
    if(NOT QUOLL_VULKAN AND NOT QUOLL_NCNN)
        list(REMOVE_ITEM classes VulkanDevice PipelineCache)
    endif()
    list(FILTER functions EXCLUDE REGEX "^quoll_")
    list(REMOVE_DUPLICATES classes)
    list(REMOVE_DUPLICATES functions)
    set(names "")
    foreach(class IN LISTS classes)
        string(APPEND names "    quoll::${class}::[!P]*;\n    quoll::${class}::P[!r]*;\n    quoll::${class}::Pr[!i]*;\n")
        # A pattern: a name as such that the library lacks (a class of another system) is an error for lld 16 and later.
        foreach(table "vtable" "typeinfo")
            string(APPEND names "    ${table}?for?quoll::${class};\n")
        endforeach()
    endforeach()
    foreach(function IN LISTS functions)
        string(APPEND names "    quoll::${function}[!0-9A-Za-z_]*;\n")
    endforeach()
    string(APPEND names "    quoll::vk[A-Z]*;\n    quoll::support_VK_*;\n")  # quoll/vulkan_functions.h
    file(CONFIGURE OUTPUT ${file} CONTENT "{\nglobal:\n  quoll_*;\n  extern \"C++\" {\n${names}  };\nlocal: *;\n};\n" @ONLY)
endfunction()
