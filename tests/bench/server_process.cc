#include "tests/bench/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>

namespace stepcast::bench {

namespace {

constexpr char kListening[] = "listening grpc ";

pid_t Start(std::vector<std::string> arguments, int out) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t process = -1;
  const int error =
      posix_spawn(&process, arguments[0].c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + arguments[0]);
  return process;
}

void Await(pid_t process) {
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// The text that follows `before` on its line; empty where the text ends without it.
std::string ReadLineAfter(const std::string& before, int from) {
  std::string text;
  std::array<char, 4096> block{};
  for (ssize_t count = read(from, block.data(), block.size()); count > 0;
       count = read(from, block.data(), block.size())) {
    text.append(block.data(), static_cast<size_t>(count));
    const size_t at = text.find(before);
    const size_t end = at == std::string::npos ? at : text.find('\n', at);
    if (end != std::string::npos) return text.substr(at + before.size(), end - at - before.size());
  }
  return "";
}

int64_t StatusBytes(pid_t process, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    int64_t kibibytes = 0;
    if (word == name + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  throw std::runtime_error("/proc/PID/status of the server has no " + name);
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& flags) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  output_ = ends[0];
  std::vector<std::string> arguments{STEPCAST_SERVER_PROGRAM,
                                     "--listen",
                                     "127.0.0.1:0",
                                     "--http-listen",
                                     "127.0.0.1:0",
                                     "--store",
                                     "memory",
                                     "--log-level",
                                     "off"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  process_ = Start(std::move(arguments), ends[1]);
  close(ends[1]);
  address_ = ReadLineAfter(kListening, output_);
  if (address_.empty()) {
    Await(process_);
    close(output_);
    throw std::runtime_error("stepcastd does not start");
  }
}

ServerProcess::~ServerProcess() {
  kill(process_, SIGTERM);
  Await(process_);
  close(output_);
}

double ServerProcess::CpuNs() const {
  clockid_t clock{};
  timespec now{};
  if (clock_getcpuclockid(process_, &clock) != 0 || clock_gettime(clock, &now) != 0)
    throw std::runtime_error("the server has no clock");
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

int64_t ServerProcess::ResidentBytes() const { return StatusBytes(process_, "VmRSS"); }
int64_t ServerProcess::PeakResidentBytes() const { return StatusBytes(process_, "VmHWM"); }

void ServerProcess::ForgetPeak() const {
  const std::string path = "/proc/" + std::to_string(process_) + "/clear_refs";
  if (!(std::ofstream(path) << "5" << std::flush))
    throw std::runtime_error(path + " cannot be written");
}

}  // namespace stepcast::bench
