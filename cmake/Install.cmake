# What `cmake --install` lays down: headers, both libraries, inlay.pc and a package for find_package(inlay).

include(CMakePackageConfigHelpers)

install(TARGETS inlay EXPORT inlay-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/inlay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(TARGET inlay_static)
  install(FILES "${PROJECT_BINARY_DIR}/libinlay.a" DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

set(inlay_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/inlay)
install(EXPORT inlay-targets NAMESPACE inlay:: DESTINATION ${inlay_package_dir})
configure_package_config_file(cmake/inlay-config.cmake.in "${PROJECT_BINARY_DIR}/inlay-config.cmake"
                              INSTALL_DESTINATION ${inlay_package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/inlay-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/inlay-config.cmake" "${PROJECT_BINARY_DIR}/inlay-config-version.cmake"
        DESTINATION ${inlay_package_dir})

# Relative paths, so that the installed tree may move.
file(RELATIVE_PATH INLAY_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(pkgconfig/inlay.pc.in "${PROJECT_BINARY_DIR}/inlay.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/inlay.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
