# SPDX-License-Identifier: Apache-2.0
# The Python package: python/tare, the extension _native, which holds the library, and _declared.py, which
# python/declare.py writes from the headers. In a build folder the package stands in python/tare, so that
# PYTHONPATH=build/dev/python runs it; `pip install ./python` builds the same and installs it.
set(TARE_PYTHON AUTO CACHE STRING "The Python package: AUTO, ON or OFF")
set_property(CACHE TARE_PYTHON PROPERTY STRINGS AUTO ON OFF)
if(TARE_PYTHON STREQUAL "AUTO" AND (CMAKE_CROSSCOMPILING OR NOT PROJECT_IS_TOP_LEVEL OR TARE_TEST_ROOMS OR TARE_FUZZ))
  return()
endif()
if(TARE_PYTHON STREQUAL "OFF" OR (TARE_PYTHON STREQUAL "AUTO" AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT TARE_SANITIZE))
  return()
endif()
# The first version whose stable ABI has buffers.
find_package(Python3 3.11 QUIET COMPONENTS Interpreter Development.Module)
if(NOT Python3_FOUND)
  if(TARE_PYTHON STREQUAL "ON")
    message(FATAL_ERROR "The Python package needs Python 3.11 or newer with its headers (Debian: python3-dev)")
  endif()
  message(STATUS "python: 0")
  return()
endif()
message(STATUS "python: ${Python3_VERSION}")

set(tare_python_folder "${PROJECT_BINARY_DIR}/python/tare")
set(tare_declared "${tare_python_folder}/_declared.py")
file(MAKE_DIRECTORY "${tare_python_folder}")
file(GLOB tare_public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/tare/*.h")
add_custom_command(
  OUTPUT "${tare_declared}"
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/python/declare.py"
          "${PROJECT_SOURCE_DIR}/include" "${tare_declared}"
  DEPENDS "${PROJECT_SOURCE_DIR}/python/declare.py" ${tare_public_headers}
  COMMENT "Reading the headers for Python" VERBATIM)

# Sources appear in the build folder as links: a change needs no build.
file(GLOB_RECURSE tare_python_sources RELATIVE "${PROJECT_SOURCE_DIR}/python/tare" CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/python/tare/*.py" "${PROJECT_SOURCE_DIR}/python/tare/*.pyi"
     "${PROJECT_SOURCE_DIR}/python/tare/py.typed")
foreach(source IN LISTS tare_python_sources)
  get_filename_component(folder "${tare_python_folder}/${source}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/tare/${source}" "${tare_python_folder}/${source}" SYMBOLIC)
endforeach()

# The exporter is a tool of its own as well.
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/tools/tare_export.py" "${tare_python_folder}/_export.py" SYMBOLIC)

file(GLOB tare_native_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/native/*.c")
add_library(tare_python MODULE ${tare_native_sources} $<TARGET_OBJECTS:tare_objects>
            $<TARGET_OBJECTS:tare_command_objects> "${tare_declared}")
target_include_directories(tare_python SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
target_include_directories(tare_python PRIVATE "${PROJECT_SOURCE_DIR}/include")
target_compile_definitions(tare_python PRIVATE Py_LIMITED_API=0x030B0000)
target_link_libraries(tare_python PRIVATE tare_dependencies)
set(tare_python_map "${PROJECT_BINARY_DIR}/generated/python.map")
configure_file("${PROJECT_SOURCE_DIR}/cmake/python.map.in" "${tare_python_map}" @ONLY)
target_link_options(tare_python PRIVATE "LINKER:--version-script=${tare_python_map}")
set_target_properties(tare_python PROPERTIES
  PREFIX "" OUTPUT_NAME _native SUFFIX ".abi3.so" LINKER_LANGUAGE C
  LIBRARY_OUTPUT_DIRECTORY "${tare_python_folder}" LINK_DEPENDS "${tare_python_map}")
install(TARGETS tare_python LIBRARY DESTINATION tare COMPONENT python EXCLUDE_FROM_ALL)
install(FILES "${PROJECT_SOURCE_DIR}/tools/tare_export.py" DESTINATION tare RENAME _export.py
        COMPONENT python EXCLUDE_FROM_ALL)
install(FILES "${tare_declared}" DESTINATION tare COMPONENT python EXCLUDE_FROM_ALL)

# python/tests/test_model.py is the test python.model. A sanitizer has to be there before the interpreter,
# and with it the C++ library, without which it stops at the first exception of other packages.
function(tare_add_python_tests)
  file(GLOB tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/tests/test_*.py")
  set(environment "${tare_test_environment}")
  if(TARE_SANITIZE MATCHES "address")
    foreach(name libasan.so libstdc++.so.6)
      execute_process(COMMAND "${CMAKE_C_COMPILER}" -print-file-name=${name}
                      OUTPUT_VARIABLE library OUTPUT_STRIP_TRAILING_WHITESPACE)
      string(APPEND preload " ${library}")
    endforeach()
    list(FILTER environment EXCLUDE REGEX "^ASAN_OPTIONS=")
    list(APPEND environment "TARE_PRELOAD=${preload}"
         "ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0") # the interpreter's own
  endif()
  foreach(test IN LISTS tests)
    get_filename_component(name "${test}" NAME_WE)
    string(REGEX REPLACE "^test_" "python." name "${name}")
    tare_add_test(${name} sh "${PROJECT_SOURCE_DIR}/python/tests/run.sh" "${PROJECT_BINARY_DIR}/python"
                  "${Python3_EXECUTABLE}" "${test}")
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}")
  endforeach()
endfunction()
