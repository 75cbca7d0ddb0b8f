#include "tests/client/support/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace stepcast::client {

namespace {

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  return {ends[0], ends[1]};
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Its standard output and error go to these; -1: where this process's go.
pid_t Start(std::vector<std::string> arguments,
            const std::map<std::string, std::string>& environment, int out, int err) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (environment.count(text.substr(0, text.find('='))) == 0) variables.push_back(text);
  }
  for (const auto& [name, value] : environment) variables.push_back(absl::StrCat(name, "=", value));

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  if (err >= 0) posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t process = -1;
  const int error = posix_spawn(&process, arguments[0].c_str(), &actions, nullptr,
                                Pointers(arguments).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error("cannot start " + arguments[0] + ": " + std::strerror(error));
  return process;
}

int Wait(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Reads what is there; false at the end.
bool ReadSome(int from, std::string& to) {
  std::array<char, 65536> block{};
  const ssize_t count = read(from, block.data(), block.size());
  if (count > 0) to.append(block.data(), static_cast<size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

}  // namespace

Outcome RunProgram(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& environment) {
  const Pipe out = MakePipe();
  const Pipe err = MakePipe();
  const pid_t process = Start(arguments, environment, out.write, err.write);
  close(out.write);
  close(err.write);
  Outcome outcome;
  std::array<pollfd, 2> open{{{.fd = out.read, .events = POLLIN, .revents = 0},
                              {.fd = err.read, .events = POLLIN, .revents = 0}}};
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (poll(open.data(), open.size(), -1) < 0) continue;
    if (open[0].revents != 0 && !ReadSome(out.read, outcome.out)) open[0].fd = -1;
    if (open[1].revents != 0 && !ReadSome(err.read, outcome.err)) open[1].fd = -1;
  }
  close(out.read);
  close(err.read);
  outcome.exit_code = Wait(process);
  return outcome;
}

ServerProcess::ServerProcess(const std::string& program, const std::string& listen) {
  const Pipe out = MakePipe();
  process_ = Start({program, "--listen", listen, "--http-listen", "127.0.0.1:0", "--store",
                    "memory", "--log-level", "off"},
                   {}, out.write, -1);
  close(out.write);
  output_ = out.read;
  const std::string before = "listening grpc ";
  std::string text;
  size_t at = std::string::npos;
  while (at == std::string::npos || text.find('\n', at) == std::string::npos) {
    if (!ReadSome(output_, text))
      throw std::runtime_error(absl::StrCat(program, " did not start: ", text));
    at = text.find(before);
  }
  address_ = text.substr(at + before.size(), text.find('\n', at) - at - before.size());
}

ServerProcess::~ServerProcess() {
  kill(process_, SIGTERM);
  Wait(process_);
  close(output_);
}

}  // namespace stepcast::client
