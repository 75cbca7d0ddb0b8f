# Debian's own Python, which is the one that has Debian's packages for it.
set(STEPCAST_PYTHON /usr/bin/python3)

# stepcast_python_tests(NAME FILE a_test.py [TIMEOUT seconds] [ENVIRONMENT NAME=VALUE ...]): each unittest class is a test to ctest, `NAME.Class`. What
# became of each of its methods is in cases/NAME.Class.xml of the build's folder, where ./dev counts them.
function(stepcast_python_tests name)
  cmake_parse_arguments(ARG "" "FILE;TIMEOUT" "ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 1800)
  endif()
  cmake_path(ABSOLUTE_PATH ARG_FILE OUTPUT_VARIABLE file)
  cmake_path(GET file STEM module)
  if(STEPCAST_SANITIZE)
    list(APPEND ARG_ENVIRONMENT STEPCAST_PATIENCE_SECONDS=900)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  # Read anew by the next build when it changes.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} lines REGEX "^class [A-Za-z0-9_]+[(:]|^    def test_[a-z0-9_]+\\(")
  set(class "")
  set(classes "")
  set(shared "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^class ([A-Za-z0-9_]+)(.*)")
      set(class ${CMAKE_MATCH_1})
      set(bases "${CMAKE_MATCH_2}")
      foreach(mixin IN LISTS shared)
        if(bases MATCHES "[(, ]${mixin}[,)]")
          list(APPEND classes ${class})
        endif()
      endforeach()
    elseif(bases MATCHES "^\\(")
      list(APPEND classes ${class})
    else()
      list(APPEND shared ${class})
    endif()
  endforeach()
  # A class without a base has tests that others share; one without a test is what they have in common.
  list(REMOVE_DUPLICATES classes)
  foreach(class IN LISTS classes)
    set(test ${name}.${class})
    add_test(NAME ${test} COMMAND ${STEPCAST_PYTHON} -B ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/run_unittest.py ${PROJECT_BINARY_DIR}/cases/${test}.xml
                                  ${module}.${class})
    set_tests_properties(
      ${test} PROPERTIES
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77 ENVIRONMENT "${ARG_ENVIRONMENT}")
    stepcast_label(${test})
  endforeach()
endfunction()
