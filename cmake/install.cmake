# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` leaves: headers, both libraries, tare.pc, the CMake package, the command
# line, its pages and completions, documents with examples, schemas and backends, the tools in Python,
# and the bill of materials of them. What debuggers need is left out, until `cmake --install build/release --component debug` installs it.
include(CMakePackageConfigHelpers)

# A path of an install rule, as the script that runs it sees it.
function(tare_find_installed out folder)
  if(NOT IS_ABSOLUTE "${folder}")
    string(PREPEND folder "\${CMAKE_INSTALL_PREFIX}/")
  endif()
  set(${out} "\$ENV{DESTDIR}${folder}" PARENT_SCOPE)
endfunction()

# CMake strips programs and shared libraries when it is told so, and static ones never.
set(tare_is_stripped OFF)
if(TARE_STRIP AND CMAKE_STRIP AND CMAKE_OBJCOPY AND CMAKE_READELF)
  set(tare_is_stripped ON)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP 1)")
endif()

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tare" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h")
if(TARGET tare_cli)
  install(TARGETS tare_cli DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# Completions for shells, written by the program itself; a cross build cannot run it.
if(TARGET tare_cli AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  set(tare_completions "${PROJECT_BINARY_DIR}/completions")
  foreach(shell bash zsh fish)
    install(CODE "file(MAKE_DIRECTORY \"${tare_completions}\")
      execute_process(COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} \"$<TARGET_FILE:tare_cli>\" completion ${shell}
        OUTPUT_FILE \"${tare_completions}/${shell}\" RESULT_VARIABLE status)
      if(status)
        message(FATAL_ERROR \"tare completion ${shell}: \${status}\")
      endif()")
  endforeach()
  install(FILES "${tare_completions}/bash" RENAME tare
          DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${tare_completions}/zsh" RENAME _tare
          DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${tare_completions}/fish" RENAME tare.fish
          DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
file(GLOB tare_man_pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.1")
install(FILES ${tare_man_pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")

# Documents keep their places towards each other, so that their links lead somewhere.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE
        DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs examples backends DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES tools/tare_export.py tools/torch_configs.py DESTINATION "${CMAKE_INSTALL_DATADIR}/tare/tools")

# The shared library needs nothing from its user. The static one needs our dependencies, so its
# targets stand in a file of their own that is read on demand.
set(tare_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tare")
set_target_properties(tare_static PROPERTIES EXPORT_NAME static)
set(tare_static_exports tare_static tare_dependencies)
if(TARGET tare_dnnl)
  list(APPEND tare_static_exports tare_dnnl)
endif()
install(TARGETS tare EXPORT tareTargets DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS ${tare_static_exports} EXPORT tareStaticTargets
        DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(tare_is_stripped)
  tare_find_installed(tare_folder "${CMAKE_INSTALL_LIBDIR}")
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
    \"${tare_folder}/$<TARGET_FILE_NAME:tare_static>\" COMMAND_ERROR_IS_FATAL ANY)")
  # Debuggers look for the id of a build below lib/debug.
  foreach(target tare tare_cli)
    if(TARGET ${target})
      install(CODE "set(binary \"$<TARGET_FILE:${target}>\")\nset(readelf \"${CMAKE_READELF}\")
        set(objcopy \"${CMAKE_OBJCOPY}\")\ninclude(\"${PROJECT_SOURCE_DIR}/cmake/split_debug.cmake\")"
        COMPONENT debug EXCLUDE_FROM_ALL)
    endif()
  endforeach()
endif()
foreach(export tareTargets tareStaticTargets)
  install(EXPORT ${export} NAMESPACE tare:: DESTINATION "${tare_cmake_dir}")
endforeach()

string(JOIN " " tare_pc_modules ${tare_modules})
set(tare_modules "${tare_pc_modules}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/tareConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/tareConfig.cmake" INSTALL_DESTINATION "${tare_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tareConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tareConfig.cmake" "${PROJECT_BINARY_DIR}/tareConfigVersion.cmake"
        DESTINATION "${tare_cmake_dir}")

# tare.pc finds its prefix from its own place, so that an installed tree can be moved.
set(tare_pc_prefix "${CMAKE_INSTALL_PREFIX}")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH tare_pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" tare_pc_up "${tare_pc_up}")
  set(tare_pc_prefix "\${pcfiledir}/${tare_pc_up}")
endif()
foreach(folder LIBDIR INCLUDEDIR)
  set(tare_pc_${folder} "${CMAKE_INSTALL_${folder}}")
  if(NOT IS_ABSOLUTE "${tare_pc_${folder}}")
    string(PREPEND tare_pc_${folder} "\${prefix}/")
  endif()
endforeach()
set(tare_pc_private "-lm -pthread")
if(TARE_HAVE_DNNL)
  string(APPEND tare_pc_private " -ldnnl -lgomp")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/tare.pc.in" "${PROJECT_BINARY_DIR}/tare.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tare.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# Last, for it lists what the rules above installed.
get_property(tare_bill GLOBAL PROPERTY TARE_BILL)
set(tare_sbom_path "${CMAKE_INSTALL_DOCDIR}/tare.spdx.json")
configure_file("${PROJECT_SOURCE_DIR}/cmake/sbom.cmake.in" "${PROJECT_BINARY_DIR}/sbom.cmake" @ONLY)
install(SCRIPT "${PROJECT_BINARY_DIR}/sbom.cmake")
