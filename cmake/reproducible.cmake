# SPDX-License-Identifier: Apache-2.0
# The same sources give the same bytes, wherever and whenever they are compiled: no folder of this
# machine stands in a binary, archives hold no times and owners, and the id of a build is a digest of
# its contents. CMake sorts what it globs. scripts/reproducible.sh compares two builds.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)

# Debug information names the sources as if they lay where systems keep those of their packages.
# Debug builds keep the true paths for editors. The later of two maps that fit is taken.
set(tare_source_home "/usr/src/tare-${PROJECT_VERSION}")
check_c_compiler_flag(-ffile-prefix-map=/from=/to TARE_KNOWS_FILE_PREFIX_MAP)
if(TARE_KNOWS_FILE_PREFIX_MAP)
  add_compile_options("$<$<NOT:$<CONFIG:Debug>>:\
-ffile-prefix-map=${PROJECT_SOURCE_DIR}=${tare_source_home};\
-ffile-prefix-map=${PROJECT_BINARY_DIR}=${tare_source_home}/build>")
endif()

check_linker_flag(C "LINKER:--build-id=sha1" TARE_LINKS_BUILD_ID)
if(TARE_LINKS_BUILD_ID)
  add_link_options("$<$<NOT:$<CONFIG:Debug>>:LINKER:--build-id=sha1>")
endif()

# GNU's archiver leaves out times and owners when told so; others never write them or have no switch.
execute_process(COMMAND "${CMAKE_AR}" --version OUTPUT_VARIABLE tare_archiver ERROR_QUIET)
if(tare_archiver MATCHES "GNU|LLVM")
  set(CMAKE_C_ARCHIVE_CREATE "<CMAKE_AR> qcD <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_C_ARCHIVE_APPEND "<CMAKE_AR> qD <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_C_ARCHIVE_FINISH "<CMAKE_RANLIB> -D <TARGET>")
endif()
