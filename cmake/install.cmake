# make install: headers, both libraries, find_package(quoll) and pkg-config; programs, examples, licence.
include(CMakePackageConfigHelpers)

list(TRANSFORM quoll_library_kinds PREPEND quoll_ OUTPUT_VARIABLE quoll_libraries)
install(TARGETS ${quoll_libraries} EXPORT quoll-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/quoll ${QUOLL_GENERATED_DIR}/public/quoll
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

if(TARGET quoll_glsl)
    set(QUOLL_GLSL ON)
    install(TARGETS quoll_glsl EXPORT quoll-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET quoll_onnx)
    set(QUOLL_ONNX ON)
    set_target_properties(quoll_onnx PROPERTIES EXPORT_NAME onnx)
    install(TARGETS quoll_onnx quoll_tool_common EXPORT quoll-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET quoll_ncnn)
    install(TARGETS quoll_ncnn EXPORT quoll-targets)
    if(TARGET ncnn_simpleocv)
        install(TARGETS ncnn_simpleocv EXPORT quoll-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endif()
    configure_file(${PROJECT_SOURCE_DIR}/cmake/ncnn-config.cmake.in ${PROJECT_BINARY_DIR}/ncnn-config.cmake @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/ncnn-config.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ncnn)
endif()

set_target_properties(quoll_static PROPERTIES EXPORT_NAME quoll)
if(quoll_has_shared)
    set_target_properties(quoll_shared PROPERTIES EXPORT_NAME shared)
endif()
set(quoll_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/quoll)
install(EXPORT quoll-targets NAMESPACE quoll:: DESTINATION ${quoll_config_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/quoll-config.cmake.in
    ${PROJECT_BINARY_DIR}/quoll-config.cmake INSTALL_DESTINATION ${quoll_config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/quoll-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/quoll-config.cmake
    ${PROJECT_BINARY_DIR}/quoll-config-version.cmake DESTINATION ${quoll_config_dir})

# Relative, so that the tree may be installed anywhere and moved.
file(RELATIVE_PATH quoll_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(quoll_pc_atomic "")
if(NOT QUOLL_ATOMICS_ARE_INSTRUCTIONS)
    set(quoll_pc_atomic " -latomic")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/quoll.pc.in ${PROJECT_BINARY_DIR}/quoll.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/quoll.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(program IN LISTS QUOLL_PROGRAMS)
    if(TARGET ${program})
        install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/quoll)
# Those that need the library alone; they compile where they are put.
file(GLOB quoll_examples ${PROJECT_SOURCE_DIR}/examples/*.cpp ${PROJECT_SOURCE_DIR}/examples/*.h)
install(FILES ${PROJECT_SOURCE_DIR}/examples/CMakeLists.txt ${quoll_examples} DESTINATION ${CMAKE_INSTALL_DATADIR}/quoll/examples)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/detector ${PROJECT_SOURCE_DIR}/examples/encrypted ${PROJECT_SOURCE_DIR}/examples/python
    DESTINATION ${CMAKE_INSTALL_DATADIR}/quoll/examples)
# What the getting-started page begins with.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/quoll PATTERN "*.npz" EXCLUDE)
