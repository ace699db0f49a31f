# SPDX-License-Identifier: Apache-2.0
# The libraries under tare. They reach it as the one interface target `tare_dependencies`.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# Names the Debian package, because that is what a reader of the message needs next.
function(tare_require prefix module package)
  pkg_check_modules(${prefix} IMPORTED_TARGET ${module})
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "tare needs ${module} (Debian: ${package}; scripts/setup.sh installs it)")
  endif()
endfunction()

tare_require(JANSSON jansson libjansson-dev)
tare_require(MINIZIP minizip libminizip-dev)
tare_require(ZLIB zlib zlib1g-dev)

add_library(tare_dependencies INTERFACE)
target_link_libraries(tare_dependencies INTERFACE
  PkgConfig::JANSSON PkgConfig::MINIZIP PkgConfig::ZLIB Threads::Threads m)

# Debian's dnnl-config.cmake asks for OpenCL, which a CPU build has no use for, so look by name.
set(TARE_HAVE_DNNL 0)
if(NOT TARE_ONEDNN STREQUAL "OFF")
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
  find_library(DNNL_LIBRARY dnnl)
  mark_as_advanced(DNNL_INCLUDE_DIR DNNL_LIBRARY)
  if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    set(TARE_HAVE_DNNL 1)
    add_library(tare_dnnl INTERFACE)
    target_include_directories(tare_dnnl SYSTEM INTERFACE "$<BUILD_INTERFACE:${DNNL_INCLUDE_DIR}>")
    target_compile_definitions(tare_dnnl INTERFACE "$<BUILD_INTERFACE:TARE_HAVE_DNNL=1>")
    # libgomp, under oneDNN, is told to use one thread.
    target_link_libraries(tare_dnnl INTERFACE dnnl gomp)
    target_link_libraries(tare_dependencies INTERFACE tare_dnnl)
  elseif(TARE_ONEDNN STREQUAL "ON")
    message(FATAL_ERROR "TARE_ONEDNN is ON, but oneDNN was not found (Debian: libdnnl-dev)")
  endif()
endif()
message(STATUS "oneDNN: ${TARE_HAVE_DNNL}")
