# Installs BUILD under a prefix in WORK and uses it from a project outside the tree.
# Variables: BUILD, WORK, PROJECT, README, PROFILE, VERSION, FLAGS (of the compiler and linker, for sanitizers).
cmake_minimum_required(VERSION 3.25)

# run(COMMAND...): fails the test with the output if the command fails; else leaves the output in `output`.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: exit ${result}\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

# What the README shows is this project.
file(READ ${README} readme)
file(READ ${PROJECT}/main.cc source)
string(FIND "${readme}" "${source}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${README} does not show ${PROJECT}/main.cc as it is")
endif()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

# The messages are there, and nothing is put where another package of Google's APIs would put it.
if(NOT EXISTS ${WORK}/prefix/include/stepcast/v1/prediction.pb.h OR EXISTS ${WORK}/prefix/include/google)
  message(FATAL_ERROR "generated headers are not where they belong")
endif()

run(${CMAKE_COMMAND} -S ${PROJECT} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
# Port 1 is nobody's.
run(${WORK}/build/outside ${PROFILE} 127.0.0.1:1)
# The version may say which commit this is, after the project's.
if(NOT output MATCHES "^${VERSION}([~+]git[0-9.a-z]+)? alexnet_64 1\nUNAVAILABLE\n$")
  message(FATAL_ERROR "the outside program printed: ${output}")
endif()

foreach(program stepcast stepcastd)
  run(${WORK}/prefix/bin/${program} --version)
  if(NOT output MATCHES "${VERSION}")
    message(FATAL_ERROR "${program} --version printed: ${output}")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK})
