# SPDX-License-Identifier: Apache-2.0
# The libraries under tare. They reach it as the one interface target `tare_dependencies`.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# What the bill of materials of an install says of them (cmake/sbom.cmake): a row per library of its
# name, its version (empty where unknown), its licence as SPDX writes it, and how tare relates to it.
set_property(GLOBAL PROPERTY TARE_BILL "")
function(tare_add_to_bill name version licence relation)
  set_property(GLOBAL APPEND PROPERTY TARE_BILL "${name}|${version}|${licence}|${relation}")
endfunction()

# Names the Debian package, because that is what a reader of the message needs next.
function(tare_require prefix module package licence)
  pkg_check_modules(${prefix} IMPORTED_TARGET ${module})
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "tare needs ${module} (Debian: ${package}; scripts/setup.sh installs it)")
  endif()
  tare_add_to_bill(${module} "${${prefix}_VERSION}" "${licence}" DEPENDS_ON)
endfunction()

tare_require(JANSSON jansson libjansson-dev MIT)
tare_require(ZLIB zlib zlib1g-dev Zlib)
tare_require(LIBXXHASH libxxhash libxxhash-dev BSD-2-Clause)

add_library(tare_dependencies INTERFACE)
target_link_libraries(tare_dependencies INTERFACE
  PkgConfig::JANSSON PkgConfig::ZLIB PkgConfig::LIBXXHASH Threads::Threads m)
# What a user of the static library needs too, for tare.pc and the CMake package.
set(tare_modules jansson zlib libxxhash)

# A library that tare can do without: wish is AUTO, ON or OFF. Defines TARE_HAVE_${name} if it is in.
function(tare_wish wish name module package licence)
  set(TARE_HAVE_${name} 0)
  string(TOUPPER ${module} prefix)
  if(NOT wish STREQUAL "OFF")
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
    if(${prefix}_FOUND)
      set(TARE_HAVE_${name} 1)
      target_link_libraries(tare_dependencies INTERFACE PkgConfig::${prefix})
      target_compile_definitions(tare_dependencies INTERFACE
        "$<BUILD_INTERFACE:TARE_HAVE_${name}=1>")
      set(tare_modules ${tare_modules} ${module} PARENT_SCOPE)
      tare_add_to_bill(${module} "${${prefix}_VERSION}" "${licence}" DEPENDS_ON)
        elseif(wish STREQUAL "ON")
      message(FATAL_ERROR "TARE_${name} is ON, but ${module} was not found (Debian: ${package})")
    endif()
  endif()
  set(TARE_HAVE_${name} ${TARE_HAVE_${name}} PARENT_SCOPE)
  message(STATUS "${module}: ${TARE_HAVE_${name}}")
endfunction()
tare_wish("${TARE_PNG}" PNG libpng libpng-dev libpng-2.0)
tare_wish("${TARE_JPEG}" JPEG libjpeg libjpeg-dev "BSD-3-Clause AND IJG AND Zlib")

# ONNX needs the schema and its compiler too.
find_program(PROTOC_C protoc-c)
find_path(ONNX_PROTO_DIR onnx.proto PATH_SUFFIXES onnx)
mark_as_advanced(PROTOC_C ONNX_PROTO_DIR)
set(tare_onnx_wish "${TARE_ONNX}")
if(NOT PROTOC_C OR NOT ONNX_PROTO_DIR)
  if(TARE_ONNX STREQUAL "ON")
    message(FATAL_ERROR "TARE_ONNX is ON, but protoc-c or onnx.proto was not found (Debian: "
                        "protobuf-c-compiler libonnx-dev)")
  endif()
  set(tare_onnx_wish OFF)
endif()
tare_wish("${tare_onnx_wish}" ONNX libprotobuf-c libprotobuf-c-dev BSD-2-Clause)
if(TARE_HAVE_ONNX)
  tare_add_to_bill(onnx "" Apache-2.0 GENERATED_FROM) # code made of its schema is compiled in
endif()

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
    file(STRINGS "${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" tare_dnnl_numbers
         REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
    list(TRANSFORM tare_dnnl_numbers REPLACE ".* ([0-9]+)$" "\\1")
    list(JOIN tare_dnnl_numbers "." tare_dnnl_version)
    tare_add_to_bill(dnnl "${tare_dnnl_version}" Apache-2.0 DEPENDS_ON)
    tare_add_to_bill(libgomp "" "GPL-3.0-or-later WITH GCC-exception-3.1" DEPENDS_ON)
  elseif(TARE_ONEDNN STREQUAL "ON")
    message(FATAL_ERROR "TARE_ONEDNN is ON, but oneDNN was not found (Debian: libdnnl-dev)")
  endif()
endif()
message(STATUS "oneDNN: ${TARE_HAVE_DNNL}")
