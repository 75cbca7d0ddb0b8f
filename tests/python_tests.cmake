# Debian's own Python, which is the one that has Debian's packages for it.
set(STEPCAST_PYTHON /usr/bin/python3)

# stepcast_python_tests(NAME FILE a_test.py [TIMEOUT seconds] [ENVIRONMENT NAME=VALUE ...]): each method of each unittest class is a test of its own
# to ctest, `NAME.Class.method`; one that skips is skipped.
function(stepcast_python_tests name)
  cmake_parse_arguments(ARG "" "FILE;TIMEOUT" "ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  cmake_path(ABSOLUTE_PATH ARG_FILE OUTPUT_VARIABLE file)
  cmake_path(GET file STEM module)
  # Read anew by the next build when it changes.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} lines REGEX "^class [A-Za-z0-9_]+\\(|^    def test_[a-z0-9_]+\\(")
  set(class "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^class ([A-Za-z0-9_]+)")
      set(class ${CMAKE_MATCH_1})
    elseif(line MATCHES "def (test_[a-z0-9_]+)")
      set(test ${name}.${class}.${CMAKE_MATCH_1})
      add_test(NAME ${test} COMMAND ${STEPCAST_PYTHON} -B ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/run_unittest.py ${module}.${class}.${CMAKE_MATCH_1})
      set_tests_properties(
        ${test} PROPERTIES
        WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77 ENVIRONMENT "${ARG_ENVIRONMENT}")
    endif()
  endforeach()
endfunction()
