# cmake --install: the command line (component cli, as server is stepcastd), and the client library as a CMake package (component dev). Outside: find_package(stepcast) and stepcast::client.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast)

# The messages are part of the library's interface. Those of Google's APIs go into a folder of our own, so that no other package has the same files.
set_target_properties(stepcast_proto PROPERTIES EXPORT_NAME proto)
install(TARGETS stepcast_client stepcast_proto EXPORT stepcastTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/../include/stepcast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/stepcast/v1 DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast COMPONENT dev FILES_MATCHING PATTERN "*.pb.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/google DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast/googleapis COMPONENT dev
        FILES_MATCHING PATTERN "*.pb.h")
install(EXPORT stepcastTargets NAMESPACE stepcast:: DESTINATION ${package_dir} COMPONENT dev)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/stepcastConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/stepcastConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/stepcastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/stepcastConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/stepcastConfigVersion.cmake DESTINATION ${package_dir}
        COMPONENT dev)

install(TARGETS stepcast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cli)
