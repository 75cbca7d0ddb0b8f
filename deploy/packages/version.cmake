# stepcast_package_version(SOURCE VERSION): the version of the packages of the checkout SOURCE, whose project has VERSION, as package_version; when its
# commit was made, as package_epoch (seconds) and package_date (as changelogs write it). Without git or a checkout: VERSION, and now.
#
# 0.1.0 at the tag v0.1.0; before it 0.1.0~git<time>.<commit>, after it 0.1.0+git<time>.<commit>, so that each is an upgrade of those before. What is not
# committed adds .dirty.
#
# Run as a script it writes a header with the version, and leaves one that says the same untouched:
#   cmake -D SOURCE=DIR -D VERSION=0.1.0 -D HEADER=FILE [-D TEXT=VERSION_TO_TELL] -P version.cmake
function(stepcast_package_version source version)
  # The time of a commit is written in UTC.
  macro(ask result)
    execute_process(
      COMMAND ${CMAKE_COMMAND} -E env TZ=UTC LC_ALL=C git -C ${source} ${ARGN}
      OUTPUT_VARIABLE ${result}
      ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endmacro()

  set(time "")
  # A tree that was unpacked within somebody's checkout is not part of that.
  ask(top rev-parse --show-toplevel)
  file(REAL_PATH ${source} source_path)
  if(top STREQUAL source_path)
    ask(time log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd)
  endif()
  if(time)
    ask(commit log -1 --abbrev=8 --format=%h)
    ask(epoch log -1 --format=%ct)
    ask(date log -1 "--date=format-local:%a, %d %b %Y %H:%M:%S +0000" --format=%cd)
    ask(at_tag tag --points-at HEAD --list v${version})
    ask(after_tag tag --merged HEAD --list v${version})
    ask(changes status --porcelain --untracked-files=no)
    if(changes)
      string(APPEND commit .dirty)
    endif()
    if(after_tag AND (changes OR NOT at_tag))
      string(APPEND version +git${time}.${commit})
    elseif(NOT at_tag)
      string(APPEND version ~git${time}.${commit})
    endif()
  else()
    string(TIMESTAMP epoch %s UTC)
    string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  endif()
  set(package_version ${version} PARENT_SCOPE)
  set(package_epoch ${epoch} PARENT_SCOPE)
  set(package_date ${date} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND HEADER)
  cmake_minimum_required(VERSION 3.25)
  if(NOT TEXT)
    stepcast_package_version(${SOURCE} ${VERSION})
    set(TEXT ${package_version})
  endif()
  file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define STEPCAST_VERSION \"@TEXT@\"\n" @ONLY)
endif()
