#include "tests/bench/child_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace stepcast::bench {

namespace {

void WriteAll(int file, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(file, &text[at], text.size() - at);
    if (written <= 0) _exit(1);
    at += static_cast<size_t>(written);
  }
}

[[noreturn]] void RunChild(int file, const std::function<std::string()>& compute) {
  try {
    WriteAll(file, compute());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    _exit(1);
  }
  // Without the destructors, which are this process's parent's.
  _exit(0);
}

std::string ReadAll(int file) {
  std::string text;
  std::array<char, 65536> buffer{};
  for (ssize_t got = read(file, buffer.data(), buffer.size()); got > 0;
       got = read(file, buffer.data(), buffer.size())) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

std::string InChildProcess(const std::function<std::string()>& compute) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  // The child would write what is buffered once more.
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    close(ends[0]);
    RunChild(ends[1], compute);
  }
  close(ends[1]);
  std::string text = ReadAll(ends[0]);
  close(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("a child process failed");
  return text;
}

}  // namespace stepcast::bench
