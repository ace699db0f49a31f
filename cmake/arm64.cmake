# SPDX-License-Identifier: Apache-2.0
# Toolchain file of the preset `arm64`: Debian's cross compiler, its programs run by qemu-user. The
# libraries under tare lie in TARE_ARM64_SYSROOT, which scripts/arm64.sh fills.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

set(TARE_ARM64_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/arm64-sysroot" CACHE PATH
    "Where the arm64 libraries under tare lie")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TARE_ARM64_SYSROOT)
set(TARE_ARM64_CPU "max" CACHE STRING "The CPU that qemu plays, such as cortex-a53")
get_filename_component(tare_sysroot "${TARE_ARM64_SYSROOT}" REALPATH)
set(CMAKE_FIND_ROOT_PATH "${tare_sysroot}" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH) # the ONNX schema is no header of a machine
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} "${tare_sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${tare_sysroot}")
# Headers that differ by machine.
set(CMAKE_C_FLAGS_INIT "-isystem ${tare_sysroot}/usr/include/aarch64-linux-gnu")
# Libraries that those libraries need.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${tare_sysroot}/usr/lib/aarch64-linux-gnu")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")

find_program(TARE_QEMU NAMES qemu-aarch64-static qemu-aarch64)
mark_as_advanced(TARE_QEMU)
if(TARE_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR
      "${TARE_QEMU};-cpu;${TARE_ARM64_CPU};-L;/usr/aarch64-linux-gnu")
endif()
