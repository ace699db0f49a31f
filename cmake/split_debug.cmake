# SPDX-License-Identifier: Apache-2.0
# Installs what a debugger needs of `binary` under the name by which it looks for it: the id that
# stays in the stripped binary. Set by the caller: binary, readelf, objcopy.
execute_process(COMMAND "${readelf}" -n "${binary}" OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
if(NOT notes MATCHES "Build ID: ([0-9a-f][0-9a-f])([0-9a-f]+)")
  message(FATAL_ERROR "${binary} has no build id; link with --build-id")
endif()
set(symbols
    "${CMAKE_INSTALL_PREFIX}/lib/debug/.build-id/${CMAKE_MATCH_1}/${CMAKE_MATCH_2}.debug")
get_filename_component(folder "$ENV{DESTDIR}${symbols}" DIRECTORY)
file(MAKE_DIRECTORY "${folder}")
execute_process(COMMAND "${objcopy}" --only-keep-debug --compress-debug-sections "${binary}"
  "$ENV{DESTDIR}${symbols}" COMMAND_ERROR_IS_FATAL ANY)
file(CHMOD "$ENV{DESTDIR}${symbols}" FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
message(STATUS "Installing: $ENV{DESTDIR}${symbols}")
list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${symbols}")
