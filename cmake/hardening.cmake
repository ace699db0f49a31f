# SPDX-License-Identifier: Apache-2.0
# What an optimized build has against faults that we did not find: canaries and probed stacks,
# checked copies, marked targets of jumps, tables that are read-only before the first call. The test
# `hardening` looks for them in the binaries. Sanitizers see more by themselves.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)

# Programs can be loaded anywhere, on whichever compiler.
check_pie_supported(LANGUAGES C)

# Adds `flag` to `out` where the compiler has it.
function(tare_add_flag_if_known out flag)
  string(MAKE_C_IDENTIFIER "TARE_KNOWS${flag}" known)
  check_c_compiler_flag("${flag}" ${known})
  if(${known})
    set(${out} ${${out}} ${flag} PARENT_SCOPE)
  endif()
endfunction()

# Level 3 needs a newer compiler and C library than level 2; where it is unknown, the C library warns.
function(tare_find_fortify_level out)
  set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
  check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" TARE_KNOWS_FORTIFY_3)
  if(TARE_KNOWS_FORTIFY_3)
    set(${out} 3 PARENT_SCOPE)
  else()
    set(${out} 2 PARENT_SCOPE)
  endif()
endfunction()

set(tare_is_hardened OFF)
if(TARE_HARDEN AND NOT TARE_SANITIZE AND NOT TARE_FUZZ)
  set(flags "")
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
               -mbranch-protection=standard)
    tare_add_flag_if_known(flags ${flag})
  endforeach()
  tare_find_fortify_level(level)
  list(APPEND flags -Wformat -Wformat-security -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
  add_compile_options("$<$<NOT:$<CONFIG:Debug>>:${flags}>")
  foreach(flag -z,relro -z,now -z,noexecstack)
    string(MAKE_C_IDENTIFIER "TARE_LINKS${flag}" known)
    check_linker_flag(C "LINKER:${flag}" ${known})
    if(${known})
      add_link_options("$<$<NOT:$<CONFIG:Debug>>:LINKER:${flag}>")
    endif()
  endforeach()
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(tare_is_hardened ON)
  endif()
endif()
