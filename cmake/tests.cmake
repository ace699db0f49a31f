# SPDX-License-Identifier: Apache-2.0
# One test file = one program = one ctest entry. Every test runs in the source folder and finds in
# its environment TARE_SOURCE_DIR, TARE_CLI, TARE_REPLAY and TARE_SCHEMA_CHECK (the programs of this
# build).
if(TARE_TESTS OR TARE_FUZZ OR PROJECT_IS_TOP_LEVEL)
  enable_testing()
endif()

# Predicted times are those of a stored machine, so that the same layers stay float everywhere.
set(tare_test_environment "TARE_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
  "TARE_MACHINE=${PROJECT_SOURCE_DIR}/tests/data/machine.json")
if(TARGET tare_cli)
  list(APPEND tare_test_environment "TARE_CLI=$<TARGET_FILE:tare_cli>")
endif()
if(TARGET tare_replay)
  list(APPEND tare_test_environment "TARE_REPLAY=$<TARGET_FILE:tare_replay>")
endif()
if(TARE_MPI)
  list(APPEND tare_test_environment "TARE_MPIRUN=${MPIEXEC_EXECUTABLE}")
endif()
if(TARE_SANITIZE)
  list(APPEND tare_test_environment "TARE_FAULTS=few")
endif()
if(TARE_SANITIZE MATCHES "address")
  # An absurd size must be answered with NULL, as it is outside of the sanitizer.
  list(APPEND tare_test_environment
    "ASAN_OPTIONS=allocator_may_return_null=1" "UBSAN_OPTIONS=print_stacktrace=1")
endif()

if(TARE_TESTS AND NOT TARE_TEST_ROOMS)
  tare_add_inner_program(schema_check "${PROJECT_BINARY_DIR}/tests"
    "${PROJECT_SOURCE_DIR}/tests/schemas/schema_check.c")
  list(APPEND tare_test_environment "TARE_SCHEMA_CHECK=$<TARGET_FILE:schema_check>")
endif()

# Exit status 77 reports a skip: a skip is never a pass.
function(tare_add_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "${tare_test_environment}" SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()

# tests/unit/core/memory/test_map.c is the program unit_core_memory_map and the test unit.core.memory.map; tests/golden
# compares with recorded data in tests/data. Files without the prefix test_, those in tests/support
# and the parts of tare-replay are shared by all.
function(tare_add_unit_tests)
  pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
  if(NOT CMOCKA_FOUND)
    message(FATAL_ERROR "The tests need cmocka (Debian: libcmocka-dev); -DTARE_TESTS=OFF builds without")
  endif()
  file(GLOB_RECURSE sources RELATIVE "${PROJECT_SOURCE_DIR}/tests" CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/tests/unit/*.c" "${PROJECT_SOURCE_DIR}/tests/golden/*.c"
       "${PROJECT_SOURCE_DIR}/tests/faults/*.c"
       "${PROJECT_SOURCE_DIR}/tests/support/*.c" "${PROJECT_SOURCE_DIR}/tests/replay/*.c")
  list(FILTER sources EXCLUDE REGEX "^replay/main\\.c$")
  # The command line as a function, for jobs that something fails in.
  add_library(tare_command_line STATIC $<TARGET_OBJECTS:tare_command_objects>)
  target_link_libraries(tare_command_line PUBLIC ${tare_inner} m)
  set(shared ${sources})
  list(FILTER shared EXCLUDE REGEX "(^|/)test_[^/]*\\.c$")
  list(FILTER sources INCLUDE REGEX "(^|/)test_[^/]*\\.c$")
  if(TARE_TEST_ROOMS)
    list(JOIN TARE_TEST_ROOMS "|" rooms)
    list(FILTER sources INCLUDE REGEX "^unit/(${rooms})/")
  endif()
  if(shared)
    list(TRANSFORM shared PREPEND "${PROJECT_SOURCE_DIR}/tests/")
    # Kernels for instructions that few machines have, once more: with these emulated, under another name.
    set(emulated "")
    foreach(isa amxint8 avxvnniint8)
      if(isa IN_LIST tare_levels)
        add_library(tare_emulated_${isa} OBJECT
          "${PROJECT_SOURCE_DIR}/src/runtime/kernels/qu8_product/${isa}.c")
        target_include_directories(tare_emulated_${isa} PRIVATE
          "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
        target_compile_definitions(tare_emulated_${isa} PRIVATE ${tare_kernel_definition}
          TARE_EMULATED_ISA=1 qu8_product__${isa}=emulated_product__${isa})
        target_compile_options(tare_emulated_${isa} PRIVATE -O3)
        list(APPEND emulated $<TARGET_OBJECTS:tare_emulated_${isa}>)
      endif()
    endforeach()
    set_property(SOURCE "${PROJECT_SOURCE_DIR}/tests/support/emulated.c" PROPERTY
                 COMPILE_DEFINITIONS ${tare_kernel_definition} ${tare_isa_definitions})
    add_library(tare_test_support STATIC ${shared} ${emulated})
    target_include_directories(tare_test_support PRIVATE
      "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/generated" "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(tare_test_support PUBLIC ${tare_inner} tare_dependencies
      PkgConfig::MINIZIP PkgConfig::CMOCKA)
  endif()
  foreach(source IN LISTS sources)
    string(REGEX REPLACE "\\.c$" "" name "${source}")
    string(REGEX REPLACE "(^|/)test_([^/]*)$" "\\1\\2" name "${name}")
    string(REPLACE "/" "." test "${name}")
    string(REPLACE "/" "_" target "${name}")
    tare_add_inner_program(${target} "${PROJECT_BINARY_DIR}/tests"
      "${PROJECT_SOURCE_DIR}/tests/${source}")
    target_link_libraries(${target} PRIVATE PkgConfig::CMOCKA)
    if(shared)
      target_link_libraries(${target} PRIVATE tare_test_support)
    endif()
    if(source MATCHES "^faults/")
      target_link_libraries(${target} PRIVATE tare_command_line)
    endif()
    tare_add_test(${test} ${target})
  endforeach()
endfunction()

# tests/cli/test_usage.sh is the test cli.usage.
function(tare_add_script_tests)
  file(GLOB_RECURSE scripts RELATIVE "${PROJECT_SOURCE_DIR}/tests" CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/tests/test_*.sh")
  foreach(script IN LISTS scripts)
    string(REGEX REPLACE "(^|/)test_([^/]*)\\.sh$" "\\1\\2" name "${script}")
    string(REPLACE "/" "." test "${name}")
    tare_add_test(${test} sh "${PROJECT_SOURCE_DIR}/tests/${script}")
  endforeach()
endfunction()

# An example that holds a line `// ctest: ARGUMENTS` is also run, with these arguments.
function(tare_add_example_tests)
  foreach(target IN LISTS tare_example_targets)
    get_target_property(source ${target} SOURCES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    file(STRINGS "${source}" line REGEX "^// ctest:" LIMIT_COUNT 1)
    if(line)
      string(REGEX REPLACE "^// ctest:" "" arguments "${line}")
      separate_arguments(arguments UNIX_COMMAND "${arguments}")
      string(REPLACE "examples_" "examples." test "${target}")
      tare_add_test(${test} ${target} ${arguments})
    endif()
  endforeach()
endfunction()

# tests/fuzz/fuzz_json.c with its saved inputs in tests/fuzz/corpus/json. Without libFuzzer a small
# driver replays the inputs, so that what was found once is looked for in every test run. A file
# tests/fuzz/mutate_json.c beside it holds a mutator that knows the format; what mutators share
# stands in tests/fuzz/edit_*.c. Parts that unit tests use, too, stand in tests/support/json/.
function(tare_add_fuzzers)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c")
  foreach(source IN LISTS sources)
    get_filename_component(target "${source}" NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" name "${target}")
    set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
    file(GLOB parts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/${name}/*.c")
    if(TARE_FUZZ)
      file(GLOB mutator CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/mutate_${name}.c")
      if(mutator)
        file(GLOB edits CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/edit_*.c")
        list(APPEND mutator ${edits} "${PROJECT_SOURCE_DIR}/tests/replay/zip_memory.c")
      endif()
      tare_add_inner_program(${target} "${PROJECT_BINARY_DIR}/fuzz"
        "${source}" ${mutator} ${parts})
      # Where ONNX's messages are described.
      target_include_directories(${target} SYSTEM PRIVATE "${PROJECT_BINARY_DIR}/generated")
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
      tare_add_test(fuzz.${name} ${target} -runs=0 "${corpus}")
    else()
      tare_add_inner_program(${target} "${PROJECT_BINARY_DIR}/fuzz" "${source}"
        "${PROJECT_SOURCE_DIR}/tests/fuzz/regression_driver.c" ${parts})
      tare_add_test(fuzz.${name} ${target} "${corpus}")
    endif()
  endforeach()
endfunction()

# What holds for the tree as a whole: the order of the rooms, the headers; and that the checks of what
# is shipped find what they look for.
function(tare_add_tree_tests)
  set(tests "${PROJECT_SOURCE_DIR}/tests")
  tare_add_test(layers sh "${tests}/layers/check_layers.sh" "${PROJECT_SOURCE_DIR}")
  tare_add_test(layers_selftest sh "${tests}/layers/selftest.sh" "${PROJECT_SOURCE_DIR}")
  tare_add_test(seam sh "${tests}/layers/check_seam.sh"
    "${PROJECT_BINARY_DIR}/CMakeFiles/tare_objects.dir"
    "${PROJECT_BINARY_DIR}/CMakeFiles/tare_cli.dir")
  tare_add_test(headers_c sh "${tests}/headers/check_headers.sh"
    "${PROJECT_SOURCE_DIR}/include" "${CMAKE_C_COMPILER}" c c17)
  find_program(TARE_CXX_COMPILER NAMES c++ g++ clang++)
  mark_as_advanced(TARE_CXX_COMPILER)
  tare_add_test(headers_cpp sh "${tests}/headers/check_headers.sh"
    "${PROJECT_SOURCE_DIR}/include" "${TARE_CXX_COMPILER}" c++ c++17)
  tare_add_test(headers_comments sh "${tests}/headers/check_comments.sh"
    "${PROJECT_SOURCE_DIR}/include")
  tare_add_test(abi_selftest sh "${tests}/abi/selftest.sh" "${PROJECT_SOURCE_DIR}"
    "${CMAKE_C_COMPILER}")
  tare_add_test(dist_selftest sh "${tests}/dist/selftest.sh" "${PROJECT_SOURCE_DIR}")
  tare_add_test(hardening_selftest sh "${tests}/hardening/selftest.sh" "${CMAKE_C_COMPILER}")
  if("avxvnni" IN_LIST tare_levels)
    tare_add_test(isa_encoding sh "${tests}/isa/check_encoding.sh"
      "${PROJECT_BINARY_DIR}/CMakeFiles/tare_objects.dir/src/runtime/kernels/qu8_product/avxvnni.c.o"
      "${PROJECT_BINARY_DIR}/CMakeFiles/tare_objects.dir/src/runtime/kernels/qu8_depthwise/avxvnni.c.o")
  endif()
endfunction()

# The patches of docs/recipes on a copy of the tree, which the first run compiles and later ones keep
# up to date. Once is enough: sanitizers have no part in it.
function(tare_add_recipe_test)
  if(TARE_SANITIZE OR TARE_FUZZ OR CMAKE_CROSSCOMPILING OR NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  set(options -G "${CMAKE_GENERATOR}" "-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}")
  if(CMAKE_C_COMPILER_LAUNCHER)
    list(APPEND options "-DCMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER}")
  endif()
  tare_add_test(recipes sh "${PROJECT_SOURCE_DIR}/tests/recipes/check_recipes.sh"
    "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/recipes" "${CMAKE_COMMAND}" ${options})
  set_tests_properties(recipes PROPERTIES LABELS recipes PROCESSORS 2 TIMEOUT 1800)
endfunction()

# What holds for the binaries that users get, and so in a build without the other tests too: the
# exported names, the promised interface, the hardening, and what an install leaves.
function(tare_add_shipping_tests)
  set(tests "${PROJECT_SOURCE_DIR}/tests")
  tare_add_test(exports sh "${tests}/exports/check_exports.sh" "$<TARGET_FILE:tare>"
    "${PROJECT_SOURCE_DIR}/include" "TARE_${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
  tare_add_test(abi sh "${PROJECT_SOURCE_DIR}/scripts/abi.sh" check "$<TARGET_FILE:tare>")
  if(tare_is_hardened AND TARGET tare_cli)
    tare_add_test(hardening sh "${tests}/hardening/check_hardened.sh"
      "$<TARGET_FILE:tare>" "$<TARGET_FILE:tare_cli>")
  endif()
  string(JOIN " " flags ${tare_sanitizer_flags})
  tare_add_test(install sh "${tests}/install/check_install.sh"
    "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}" "${CMAKE_COMMAND}" "${CMAKE_C_COMPILER}"
    ${tare_is_stripped} "${flags}")
endfunction()

# Recorded cases of the main job, and exact numeric vectors.
function(tare_add_replay_tests)
  if(NOT TARGET tare_replay)
    return()
  endif()
  tare_add_test(replay_corpus tare_replay tests/cases)
  tare_add_test(replay_from_pt2 tare_replay --from-pt2 tests/cases/from_pt2.zip)
  tare_add_test(replay_self_test tare_replay --self-test tests/cases)
  tare_add_test(replay_numerics tare_replay --numerics tests/data/numerics)
endfunction()

# The tests whose bits are the same on every machine, for builds that run them under an emulator: the
# label `bits`, and a target that builds no more than they and the programs. golden.networks is not
# among them: its least signal-to-noise ratios are those of float layers that a library calibrated.
function(tare_label_tests_of_bits)
  get_property(tests DIRECTORY PROPERTY TESTS)
  set(runtime "kernels\\..*|gemm\\.(qlayer|quantized_attention|floats\\..*)|steps\\.quantized_matmul|plan\\.plan|fast\\.pool")
  list(FILTER tests INCLUDE REGEX
       "^(unit\\.core\\.math\\.math|unit\\.runtime\\.(${runtime})|replay_numerics)$")
  set_tests_properties(${tests} PROPERTIES LABELS bits)
  set(programs ${tests})
  list(FILTER programs EXCLUDE REGEX "^replay_")
  list(TRANSFORM programs REPLACE "\\." "_")
  add_custom_target(tests_of_bits DEPENDS ${programs} tare_cli tare_replay)
endfunction()

if(TARE_TESTS AND TARE_TEST_ROOMS)
  tare_add_unit_tests()
elseif(TARE_TESTS)
  tare_add_replay_tests()
  tare_add_unit_tests()
  tare_add_script_tests()
  if(TARGET tare_python)
    tare_add_python_tests()
  endif()
  tare_add_example_tests()
  tare_add_tree_tests()
  tare_add_recipe_test()
  tare_label_tests_of_bits()
endif()
if(PROJECT_IS_TOP_LEVEL AND NOT TARE_TEST_ROOMS)
  tare_add_shipping_tests()
endif()
if(TARE_TESTS OR TARE_FUZZ)
  tare_add_fuzzers()
endif()
