# libinlay.a: one object that defines inlay_* and nothing else a host could see or clash with.
#
# All objects of the library, and what they need of the C++ runtime, mimalloc and utf8proc, are linked into one relocatable
# object (by link-static-library beside this file); then every other symbol becomes local. COMDAT groups are dissolved
# first, for the linker keeps one group of a name and would mix a C++ host's inline functions with ours. The unwinder stays
# the host's: one per process. So a C program links with `cc main.c libinlay.a -lm`, and a C++ program keeps its own
# runtime and operator new.

if(INLAY_SANITIZE)
  return()
endif()

execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a
                OUTPUT_VARIABLE INLAY_LIBSTDCXX_ARCHIVE OUTPUT_STRIP_TRAILING_WHITESPACE)
set(inlay_static_archive "${PROJECT_BINARY_DIR}/libinlay.a")
set(inlay_static_inputs
  $<TARGET_OBJECTS:inlay_objects> $<TARGET_OBJECTS:inlay_allocation>
  $<$<BOOL:${INLAY_HAVE_MIMALLOC}>:$<TARGET_OBJECTS:inlay_mimalloc>>)

add_custom_command(
  OUTPUT "${inlay_static_archive}"
  COMMAND ${CMAKE_COMMAND} -E env LD=${CMAKE_LINKER} NM=${CMAKE_NM} OBJCOPY=${CMAKE_OBJCOPY} AR=${CMAKE_AR}
          "${PROJECT_SOURCE_DIR}/cmake/link-static-library" "${inlay_static_archive}"
          ${inlay_static_inputs} ${INLAY_STATIC_DEPENDENCIES} "${INLAY_LIBSTDCXX_ARCHIVE}"
  DEPENDS inlay_objects inlay_allocation ${inlay_static_inputs} "${PROJECT_SOURCE_DIR}/cmake/link-static-library"
  COMMENT "Linking libinlay.a"
  COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(inlay_static_archive ALL DEPENDS "${inlay_static_archive}")

add_library(inlay_static STATIC IMPORTED GLOBAL)
set_target_properties(inlay_static PROPERTIES
  IMPORTED_LOCATION "${inlay_static_archive}"
  INTERFACE_INCLUDE_DIRECTORIES "${PROJECT_SOURCE_DIR}/include"
  INTERFACE_LINK_LIBRARIES m)
add_dependencies(inlay_static inlay_static_archive)
