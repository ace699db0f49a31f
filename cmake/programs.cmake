# SPDX-License-Identifier: Apache-2.0
# The command line, the replay tool, the examples and the benchmarks. A program exists as soon as
# its folder has a source.
file(GLOB_RECURSE tare_cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/*.c")

# The page of tare report, in the order in which its parts stand in it.
set(tare_page_parts page.html style.css dom.js format.js facts.js table.js layout.js viewport.js
    graph.js charts.js summary.js accuracy.js cost.js decisions.js main.js)
set(tare_page_folder "${PROJECT_SOURCE_DIR}/cli/report/page")
set(tare_page_source "${PROJECT_BINARY_DIR}/generated/report_page.c")
set(tare_page_paths ${tare_page_parts})
list(TRANSFORM tare_page_paths PREPEND "${tare_page_folder}/")
add_custom_command(
  OUTPUT "${tare_page_source}"
  COMMAND ${tare_embed_command} report/template.h report_page_ "${tare_page_source}"
          ${tare_page_parts}
  WORKING_DIRECTORY "${tare_page_folder}"
  DEPENDS ${tare_page_paths} ${tare_embed_command}
  COMMENT "Embedding the page of tare report" VERBATIM)
# Two targets compile it.
add_custom_target(tare_report_page DEPENDS "${tare_page_source}")
list(APPEND tare_cli_sources "${tare_page_source}")

if(tare_cli_sources)
  add_executable(tare_cli ${tare_cli_sources})
  add_dependencies(tare_cli tare_report_page)
  target_include_directories(tare_cli PRIVATE "${PROJECT_SOURCE_DIR}/cli")
  target_compile_options(tare_cli PRIVATE "${tare_once_flags}")
  target_link_libraries(tare_cli PRIVATE tare_static m)
  set_target_properties(tare_cli PROPERTIES
    OUTPUT_NAME tare RUNTIME_OUTPUT_DIRECTORY "${TARE_BIN_DIR}")
  # The program alone: neither the library nor the Python package depends on MPI.
  if(TARE_MPI)
    find_package(MPI COMPONENTS C)
    if(NOT MPI_C_FOUND)
      message(FATAL_ERROR "TARE_MPI is ON, but MPI was not found (Debian: libopenmpi-dev openmpi-bin)")
    endif()
    target_compile_definitions(tare_cli PRIVATE TARE_HAVE_MPI=1)
    target_link_libraries(tare_cli PRIVATE MPI::MPI_C)
    tare_add_to_bill(mpi "${MPI_C_VERSION}" NOASSERTION DEPENDS_ON)
  endif()
endif()

# The same as a function, for tests and for the Python package. clang-tidy reads a source once for each
# command, and clang-tidy 14 mixes up va_lists in between.
add_library(tare_command_objects OBJECT EXCLUDE_FROM_ALL ${tare_cli_sources})
add_dependencies(tare_command_objects tare_report_page)
set_target_properties(tare_command_objects PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
target_include_directories(tare_command_objects PRIVATE "${PROJECT_SOURCE_DIR}/cli" "${PROJECT_SOURCE_DIR}/include")
target_compile_definitions(tare_command_objects PRIVATE main=tare_command_line)
target_compile_options(tare_command_objects PRIVATE -Wno-missing-prototypes)

# What recorded cases are packed in is read by a library of its own, not by what is tested.
if(PROJECT_IS_TOP_LEVEL OR TARE_TESTS)
  pkg_check_modules(MINIZIP IMPORTED_TARGET minizip)
  if(NOT MINIZIP_FOUND)
    message(FATAL_ERROR "tare-replay and the tests need minizip (Debian: libminizip-dev)")
  endif()
endif()

# A program that may look inside the library, put into `folder`.
function(tare_add_inner_program target folder)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/generated" "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${target} PRIVATE ${tare_kernel_definition})
  target_link_libraries(${target} PRIVATE ${tare_inner} tare_dependencies PkgConfig::MINIZIP)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${folder}")
endfunction()

file(GLOB tare_replay_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/replay/*.c")
# The runners of numeric vectors serve unit tests too and make no program by themselves.
set(tare_replay_own_sources ${tare_replay_sources})
list(FILTER tare_replay_own_sources EXCLUDE REGEX "/numerics[^/]*\\.c$")
if(tare_replay_own_sources AND PROJECT_IS_TOP_LEVEL)
  tare_add_inner_program(tare_replay "${TARE_BIN_DIR}" ${tare_replay_sources})
  target_compile_options(tare_replay PRIVATE "${tare_once_flags}")
  set_target_properties(tare_replay PROPERTIES OUTPUT_NAME tare-replay)
endif()

# One program per source, from the public API alone, linked to `library` as a user would link it. The list
# of programs goes to `out`.
function(tare_add_programs folder library out)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.c")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    set(target ${folder}_${name})
    add_executable(${target} "${source}")
    target_link_libraries(${target} PRIVATE ${library} m)
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
    list(APPEND targets ${target})
  endforeach()
  set(${out} "${targets}" PARENT_SCOPE)
endfunction()

if(TARE_EXAMPLES)
  tare_add_programs(examples tare tare_example_targets)
  tare_add_programs(bench tare_static tare_bench_targets)
  # What bench/step_costs.py fits constants to: features of steps that the library computes.
  tare_add_inner_program(step_features "${PROJECT_BINARY_DIR}/bench" "${PROJECT_SOURCE_DIR}/tools/step_features.c")
endif()
