# Debian packages, by CPack: `./dev package`. README.md of this folder says what is in them and why.
#
# Files that only packages have are no part of `cmake --install` (EXCLUDE_FROM_ALL), and the target stepcast_package_files, which makes the pages of the manual
# and the completion, is no part of `all`.

include(${CMAKE_CURRENT_LIST_DIR}/version.cmake)
stepcast_package_version(${PROJECT_SOURCE_DIR} ${PROJECT_VERSION})
set(package_maintainer "The Stepcast authors <maintainers@stepcast.example>" CACHE STRING "Who answers for the packages: NAME <ADDRESS>")

set(components cli server dev)
set(packages stepcast stepcast-server libstepcast-dev)
if(STEPCAST_SLURM_PLUGIN)
  list(APPEND components slurm)
  list(APPEND packages stepcast-slurm)
endif()
set(package_dir ${CMAKE_CURRENT_BINARY_DIR}/package)
set(package_inputs ${CMAKE_CURRENT_LIST_DIR})

# Written with every configuration, like the version.
find_program(GZIP gzip)
foreach(package IN LISTS packages)
  file(
    CONFIGURE
    OUTPUT ${package_dir}/${package}/changelog
    CONTENT
      "${package} (@package_version@) unstable; urgency=medium\n\n  * Built from the project's own tree.\n\n -- @package_maintainer@  @package_date@\n"
    @ONLY)
  if(GZIP)
    execute_process(COMMAND ${GZIP} -9nkf ${package_dir}/${package}/changelog)
  endif()
endforeach()

add_custom_command(
  OUTPUT ${package_dir}/man/stamp ${package_dir}/completion ${package_dir}/_stepcast ${package_dir}/stepcast.fish
  COMMAND ${CMAKE_COMMAND} -E env SOURCE_DATE_EPOCH=${package_epoch} ${package_inputs}/man_pages.sh ${package_dir}/man $<TARGET_FILE:stepcast>
          $<TARGET_FILE:stepcastd> ${package_inputs}/../kubernetes/kubectl-stepcast
  COMMAND $<TARGET_FILE:stepcast> completion bash > ${package_dir}/completion
  COMMAND $<TARGET_FILE:stepcast> completion zsh > ${package_dir}/_stepcast
  COMMAND $<TARGET_FILE:stepcast> completion fish > ${package_dir}/stepcast.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${package_dir}/man/stamp
  DEPENDS ${package_inputs}/man_pages.sh ${package_inputs}/../kubernetes/kubectl-stepcast stepcast stepcastd
  COMMENT "Making the pages of the manual, and the completion"
  VERBATIM)
add_custom_target(stepcast_package_files DEPENDS ${package_dir}/man/stamp)

# stepcast_package_install(COMPONENT DIRECTORY FILE...): only into the package, under /usr unless absolute.
function(stepcast_package_install component directory)
  install(FILES ${ARGN} DESTINATION ${directory} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

foreach(component package IN ZIP_LISTS components packages)
  stepcast_package_install(${component} share/doc/${package} ${package_inputs}/copyright ${package_dir}/${package}/changelog.gz)
endforeach()
install(DIRECTORY ${package_dir}/man/ DESTINATION share/man/man1 COMPONENT cli EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.1.gz")
stepcast_package_install(server share/man/man8 ${package_dir}/man/stepcastd.8.gz)
install(FILES ${package_dir}/completion DESTINATION share/bash-completion/completions RENAME stepcast COMPONENT cli EXCLUDE_FROM_ALL)
stepcast_package_install(cli share/zsh/vendor-completions ${package_dir}/_stepcast)
stepcast_package_install(cli share/fish/vendor_completions.d ${package_dir}/stepcast.fish)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/deploy/kubernetes/kubectl-stepcast DESTINATION bin COMPONENT cli EXCLUDE_FROM_ALL)
stepcast_package_install(cli share/doc/stepcast/examples ${PROJECT_SOURCE_DIR}/deploy/samples/alexnet_64.profile.json)
stepcast_package_install(server lib/systemd/system ${package_inputs}/stepcastd.service)
stepcast_package_install(server /etc/stepcast ${package_inputs}/stepcastd.yaml)
install(FILES ${package_inputs}/stepcast-server.sysusers DESTINATION lib/sysusers.d RENAME stepcast-server.conf COMPONENT server EXCLUDE_FROM_ALL)
stepcast_package_install(
  server share/doc/stepcast-server/examples ${PROJECT_SOURCE_DIR}/deploy/prometheus/recording.rules.yml
  ${PROJECT_SOURCE_DIR}/deploy/prometheus/alerting.rules.yml ${PROJECT_SOURCE_DIR}/deploy/grafana/stepcast.json)

if(STEPCAST_SLURM_PLUGIN)
  # Folder in which Debian's slurmctld looks.
  install(TARGETS stepcast_job_submit LIBRARY DESTINATION lib/${CMAKE_LIBRARY_ARCHITECTURE}/slurm-wlm COMPONENT slurm EXCLUDE_FROM_ALL)
  stepcast_package_install(slurm /etc/slurm ${PROJECT_SOURCE_DIR}/deploy/slurm/stepcast.yaml)
  stepcast_package_install(slurm share/doc/stepcast-slurm ${PROJECT_SOURCE_DIR}/deploy/slurm/README.md)
  stepcast_package_install(slurm share/doc/stepcast-slurm/examples ${PROJECT_SOURCE_DIR}/deploy/slurm/cli_filter.lua)
endif()

# An archive's times are the commit's.
file(WRITE ${package_dir}/cpack.cmake "set(ENV{SOURCE_DATE_EPOCH} ${package_epoch})\n")
set(CPACK_PROJECT_CONFIG_FILE ${package_dir}/cpack.cmake)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stepcast)
set(CPACK_PACKAGE_CONTACT "${package_maintainer}")
set(CPACK_PACKAGE_VERSION ${package_version})
# Each package has its own, the first line of its description.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_VERSION ${package_version})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_CLI_PACKAGE_NAME stepcast)
set(CPACK_DEBIAN_CLI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CLI_PACKAGE_SUGGESTS "stepcast-server, bash-completion, jq, kubernetes-client")
set(CPACK_COMPONENT_CLI_DESCRIPTION
    "predicts how fast a distributed training job will run
From one worker's training profile, stepcast predicts the throughput of a
distributed training job with any number of workers and parameter servers, how
many workers it should get, how a cluster's workers are best shared between
jobs, and in which order tensors should travel.
.
It asks a server (package stepcast-server), or works on files by itself.")

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME stepcast-server)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS "stepcast, prometheus")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${package_inputs}/server/conffiles ${package_inputs}/server/postinst ${package_inputs}/server/prerm
                                              ${package_inputs}/server/postrm)
set(CPACK_COMPONENT_SERVER_DESCRIPTION
    "service that predicts how fast distributed training jobs will run
stepcastd stores training profiles and answers over gRPC how fast a
distributed training job runs with any number of workers and parameter
servers, how many workers it should get, and in which order its tensors should
travel: for a cluster scheduler's loop.
.
It listens on loopback until told otherwise, and keeps profiles in
/var/lib/stepcast.")

set(CPACK_DEBIAN_SLURM_PACKAGE_NAME stepcast-slurm)
set(CPACK_DEBIAN_SLURM_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_SLURM_PACKAGE_DEPENDS "slurmctld (>= ${STEPCAST_SLURM_VERSION}), slurmctld (<< ${STEPCAST_SLURM_VERSION}.99)")
set(CPACK_DEBIAN_SLURM_PACKAGE_SUGGESTS "stepcast, stepcast-server")
set(CPACK_DEBIAN_SLURM_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/slurm/conffiles)
set(CPACK_COMPONENT_SLURM_DESCRIPTION
    "advises Slurm's users on numbers of nodes for training jobs
A plugin of slurmctld, job_submit/stepcast: a job that names a training profile
and takes a range of nodes is told how many pay, or has its range narrowed to
them. No job is refused, and none waits longer than 20 ms.
.
It does nothing until slurm.conf names it in JobSubmitPlugins.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libstepcast-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libgrpc++-dev, libprotobuf-dev, libabsl-dev, libssl-dev, zlib1g-dev, protobuf-compiler, protobuf-compiler-grpc")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "cmake")
set(CPACK_COMPONENT_DEV_DESCRIPTION
    "C++ client of Stepcast, which predicts how fast training jobs run
Headers, those of the messages included, static libraries and a CMake package:
find_package(stepcast) and stepcast::client, whose calls have deadlines, retries
that are safe, and errors with their details.")
include(CPack)
