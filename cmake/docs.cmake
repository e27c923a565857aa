# The target `docs`: a page for each public class and header in <build>/docs/html, where Doxygen is.
find_program(QUOLL_DOXYGEN doxygen)
find_package(Python3 COMPONENTS Interpreter QUIET)
if(QUOLL_DOXYGEN AND Python3_FOUND)
    configure_file(${PROJECT_SOURCE_DIR}/docs/api/Doxyfile.in ${PROJECT_BINARY_DIR}/docs/Doxyfile @ONLY)
    add_custom_target(docs COMMAND ${QUOLL_DOXYGEN} ${PROJECT_BINARY_DIR}/docs/Doxyfile VERBATIM
        COMMENT "docs/html/index.html: the public headers")
endif()
