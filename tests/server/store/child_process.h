// A piece of a test in a process of its own.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace stepcast::server {

// Runs `body` in a child and returns its exit status, or -1 if a signal ended it. The child runs
// nothing else of the test program. REQUIRES: this process has one thread.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(std::move(body)());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace stepcast::server
