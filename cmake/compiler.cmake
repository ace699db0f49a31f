# SPDX-License-Identifier: Apache-2.0
# The dialect, the warnings and the sanitizers of everything that is built here.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
# Names that are not for users are hidden, unless tests see them in a shared library: with the whole
# library in each of their programs, a build under sanitizers takes 8 GB. What users get is bound by
# tare.map.in in either case.
if(TARE_TESTS AND TARE_SHARED_TESTS)
  add_compile_options(-fno-semantic-interposition) # calls within the library stay calls
else()
  set(CMAKE_C_VISIBILITY_PRESET hidden)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Numbers must not depend on who compiled them: no fused multiply-add unless the source asks.
add_compile_options(-ffp-contract=off)
# -std=c17 hides what the C library offers beyond ISO C; mmap, threads and clocks are POSIX.
add_compile_definitions(_XOPEN_SOURCE=700 _FILE_OFFSET_BITS=64)

add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wvla -Wmissing-prototypes
  # A row of a table leaves out what is the default.
  -Wno-missing-field-initializers)
# Without assertions, what only they used is unused; builds with assertions still tell.
add_compile_options("$<$<NOT:$<CONFIG:Debug>>:-Wno-unused-parameter;-Wno-unused-variable;\
-Wno-unused-but-set-variable;-Wno-unused-function>")
if(TARE_WERROR)
  add_compile_options(-Werror)
endif()

# Where a debugger finds the variables of optimized code is a fifth of gcc's time. Only the dev build,
# which is for debuggers, pays for it; line numbers are in every build.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND (TARE_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Debug"))
  add_compile_options(-fno-var-tracking)
endif()

if(TARE_SANITIZE)
  set(tare_sanitizer_flags -fsanitize=${TARE_SANITIZE} -fno-sanitize-recover=all)
  add_compile_options(${tare_sanitizer_flags} -fno-omit-frame-pointer)
  add_link_options(${tare_sanitizer_flags})
endif()
if(TARE_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TARE_FUZZ needs clang (CMAKE_C_COMPILER=clang), found ${CMAKE_C_COMPILER_ID}")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
