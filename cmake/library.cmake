# SPDX-License-Identifier: Apache-2.0
# libtare, static and shared, from one set of objects; and the files of backends/ compiled into it.
file(GLOB_RECURSE tare_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.c")
file(GLOB tare_embedded_files RELATIVE "${PROJECT_SOURCE_DIR}/backends" CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/backends/*.json" "${PROJECT_SOURCE_DIR}/backends/qconfigs/*.json")

# When cross-compiling, the host's build of tools/embed.c comes from outside.
set(TARE_EMBED_TOOL "" CACHE FILEPATH "A tare-embed that runs on this machine (for cross builds)")
if(TARE_EMBED_TOOL)
  set(tare_embed_command "${TARE_EMBED_TOOL}")
elseif(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(FATAL_ERROR "Cross build: compile tools/embed.c for this machine (cc tools/embed.c -o "
                      "tare-embed) and name it with -DTARE_EMBED_TOOL=")
else()
  add_executable(tare_embed "${PROJECT_SOURCE_DIR}/tools/embed.c")
  set_target_properties(tare_embed PROPERTIES OUTPUT_NAME tare-embed)
  set(tare_embed_command tare_embed)
endif()

set(tare_embedded_source "${PROJECT_BINARY_DIR}/generated/embedded_files.c")
set(tare_embedded_paths ${tare_embedded_files})
list(TRANSFORM tare_embedded_paths PREPEND "${PROJECT_SOURCE_DIR}/backends/")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/generated")
add_custom_command(
  OUTPUT "${tare_embedded_source}"
  COMMAND ${tare_embed_command} config/embedded.h tare__embedded_ "${tare_embedded_source}"
          ${tare_embedded_files}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/backends"
  DEPENDS ${tare_embedded_paths} ${tare_embed_command}
  COMMENT "Embedding backends/" VERBATIM)

# Rows of src/ops/rows/ that are searched, in order: operators by number, and signatures by name.
file(GLOB tare_row_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/ops/rows/*.def")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tare_row_files})
function(tare_sort_rows kind path)
  set(rows "")
  foreach(file IN LISTS tare_row_files)
    file(STRINGS "${file}" found REGEX "^${kind}\\(")
    list(APPEND rows ${found})
  endforeach()
  list(SORT rows)
  list(JOIN rows "\n" rows)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/${path}" CONTENT "${rows}\n" @ONLY)
endfunction()
tare_sort_rows(ID ops/ids.def)
tare_sort_rows(SIGNATURE ops/sorted_signatures.def)

include(CheckCSourceCompiles)

# The name of a kernel's file gives its instruction set, before the number of a part where it is
# compiled in several; a machine without it never runs the code.
# avx512vl holds a second encoding of avxvnni's kernels, avx512vbmi what some CPUs of avx512vnni have,
# avxvnniint8 what some of avxvnni have.
set(tare_x86_levels avx2 avxvnni avxvnniint8 avx512vl avx512vnni avx512vbmi amxint8)
set(tare_isa_flags_avx2 -mavx2 -mfma)
set(tare_isa_flags_avxvnni -mavx2 -mfma -mavxvnni)
set(tare_isa_flags_avxvnniint8 ${tare_isa_flags_avxvnni})
set(tare_isa_flags_avx512vl -mavx2 -mfma -mavx512f -mavx512vl -mavx512vnni)
set(tare_isa_flags_avx512vnni
    -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx2 -mfma)
set(tare_isa_flags_avx512vbmi ${tare_isa_flags_avx512vnni} -mavx512vbmi)
set(tare_isa_flags_amxint8 ${tare_isa_flags_avx512vnni})
set(tare_arm_levels neon neondot i8mm)
set(tare_isa_flags_neon "")
set(tare_isa_flags_neondot -march=armv8.2-a+dotprod)
set(tare_isa_flags_i8mm -march=armv8.2-a+dotprod+i8mm)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(tare_kernel_definition TARE_HAVE_X86_KERNELS=1)
  set(tare_levels ${tare_x86_levels})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(tare_kernel_definition TARE_HAVE_ARM_KERNELS=1)
  set(tare_levels ${tare_arm_levels})
endif()
# Kernels whose instructions are written in assembly are left out where the assembler lacks these.
set(tare_isa_definitions "")
function(tare_probe_level isa instruction)
  if(isa IN_LIST tare_levels)
    string(TOUPPER TARE_HAVE_${isa} found)
    check_c_source_compiles("int main(void) { __asm__(\"${instruction}\"); return 0; }" ${found})
    if(${found} OR TARE_EMULATE)
      set(tare_isa_definitions ${tare_isa_definitions} ${found}=1 PARENT_SCOPE)
    else()
      list(REMOVE_ITEM tare_levels ${isa})
      set(tare_levels ${tare_levels} PARENT_SCOPE)
    endif()
  endif()
endfunction()
tare_probe_level(amxint8 "tdpbusd %tmm2, %tmm1, %tmm0")
tare_probe_level(avxvnniint8 "vpdpbssd %ymm2, %ymm1, %ymm0")
if(TARE_EMULATE)
  list(APPEND tare_isa_definitions TARE_EMULATED_ISA=1)
endif()
set(tare_kernels ${tare_sources})
list(FILTER tare_kernels INCLUDE REGEX "/src/runtime/kernels/")
set_property(SOURCE ${tare_kernels} PROPERTY COMPILE_DEFINITIONS ${tare_isa_definitions})

foreach(isa IN LISTS tare_x86_levels tare_arm_levels)
  set(tare_kernels ${tare_sources})
  list(FILTER tare_kernels INCLUDE REGEX "/src/runtime/kernels/.*/${isa}(_[0-9])?\\.c$")
  if(isa IN_LIST tare_levels)
    set_property(SOURCE ${tare_kernels} PROPERTY COMPILE_OPTIONS ${tare_isa_flags_${isa}}
      # Half of gcc's time goes into where debuggers find the variables of unrolled code. Line numbers stay.
      "$<$<C_COMPILER_ID:GNU>:-fno-var-tracking;-g1>")
  else()
    list(REMOVE_ITEM tare_sources ${tare_kernels})
  endif()
endforeach()

# Rooms whose code runs once for a model, not for each sample, have no loops worth -O2: a quarter of gcc's time.
set(tare_once_rooms config flow io/native io/onnx io/pt2 model ops/text quantizers)
set(tare_once_flags "$<$<NOT:$<CONFIG:Debug>>:-O1>")
foreach(room IN LISTS tare_once_rooms)
  set(tare_once ${tare_sources})
  list(FILTER tare_once INCLUDE REGEX "/src/${room}/")
  set_property(SOURCE ${tare_once} APPEND PROPERTY COMPILE_OPTIONS "${tare_once_flags}")
endforeach()

# A source whose head has a line `// build: FLAGS` gets these in optimized builds: loops to vectorize or
# to unroll, which gcc's -O2 does half-heartedly.
foreach(source IN LISTS tare_sources)
  file(STRINGS "${source}" flags LIMIT_INPUT 200 LIMIT_COUNT 1 REGEX "^// build: ")
  if(flags)
    string(REPLACE "// build: " "" flags "${flags}")
    separate_arguments(flags UNIX_COMMAND "${flags}")
    set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS
      "$<$<NOT:$<CONFIG:Debug>>:${flags}>")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  endif()
endforeach()

# The ONNX reader needs the schema that protoc-c makes C of.
if(TARE_HAVE_ONNX)
  set(tare_onnx_schema "${PROJECT_BINARY_DIR}/generated/onnx.pb-c.c")
  add_custom_command(
    OUTPUT "${tare_onnx_schema}" "${PROJECT_BINARY_DIR}/generated/onnx.pb-c.h"
    COMMAND "${PROTOC_C}" "--proto_path=${ONNX_PROTO_DIR}"
            "--c_out=${PROJECT_BINARY_DIR}/generated" "${ONNX_PROTO_DIR}/onnx.proto"
    DEPENDS "${ONNX_PROTO_DIR}/onnx.proto"
    COMMENT "Generating the ONNX schema" VERBATIM)
  # Generated code is not held to our warnings.
  set_property(SOURCE "${tare_onnx_schema}" PROPERTY COMPILE_OPTIONS "-w")
else()
  list(FILTER tare_sources EXCLUDE REGEX "/src/io/onnx/")
endif()

add_library(tare_objects OBJECT ${tare_sources} "${tare_embedded_source}" ${tare_onnx_schema})
target_include_directories(tare_objects
  PUBLIC "${PROJECT_SOURCE_DIR}/include" PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(tare_objects PRIVATE $<$<CONFIG:Debug>:TARE_VERIFY=1>)
set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/core/version.c" PROPERTY
  COMPILE_DEFINITIONS "TARE_VERSION_STRING=\"${PROJECT_VERSION}\"")
target_compile_definitions(tare_objects PRIVATE ${tare_kernel_definition})
target_include_directories(tare_objects SYSTEM PRIVATE "${PROJECT_BINARY_DIR}/generated")
target_link_libraries(tare_objects PRIVATE tare_dependencies)

# The targets that users see. `tare` is the shared library, `tare_static` the other one.
function(tare_add_library target kind)
  add_library(${target} ${kind} $<TARGET_OBJECTS:tare_objects>)
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} PRIVATE tare_dependencies)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME tare LINKER_LANGUAGE C)
endfunction()
tare_add_library(tare_static STATIC)
tare_add_library(tare SHARED)
# What tests and other programs that look inside are linked to.
set(tare_inner tare_static)
if(TARE_TESTS AND TARE_SHARED_TESTS)
  tare_add_library(tare_shared_inner SHARED)
  set_target_properties(tare_shared_inner PROPERTIES OUTPUT_NAME tare_inner)
  set(tare_inner tare_shared_inner)
endif()

# Hidden visibility covers our own code; the script also keeps `tare__` names in, should one carry
# TARE_API by mistake, and whatever a static dependency would add.
set(tare_version_script "${PROJECT_BINARY_DIR}/generated/tare.map")
configure_file("${PROJECT_SOURCE_DIR}/cmake/tare.map.in" "${tare_version_script}" @ONLY)
target_link_options(tare PRIVATE "LINKER:--version-script=${tare_version_script}")
# Before 1.0 a minor version may break programs, as the CMake package says too (SameMinorVersion).
set_target_properties(tare PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS "${tare_version_script}")
add_library(tare::tare ALIAS tare)
add_library(tare::static ALIAS tare_static)
