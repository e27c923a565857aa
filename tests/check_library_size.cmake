# cmake -DSTRIP=strip -DLIBRARY=libquoll.so -DLIMIT=bytes -DCOPY=file -P check_library_size.cmake
# Fails if the library, stripped as packages have it, is larger. COPY is written.
file(COPY_FILE "${LIBRARY}" "${COPY}")
execute_process(COMMAND "${STRIP}" "${COPY}" RESULT_VARIABLE rc)
if(rc)
    message(FATAL_ERROR "${STRIP} ${COPY} failed: ${rc}")
endif()
file(SIZE "${COPY}" size)
if(size GREATER LIMIT)
    message(FATAL_ERROR "${LIBRARY} has ${size} bytes stripped, expected at most ${LIMIT}")
endif()
message(STATUS "${size} bytes of ${LIMIT}")
