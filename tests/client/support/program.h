// Programs of the build, run as a user would.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace stepcast::client {

struct Outcome {
  int exit_code = -1;  // 128 + n where signal n ended it
  std::string out;
  std::string err;
};

// Runs arguments[0] until it ends, its input empty, with `environment` besides this process's.
// Throws std::runtime_error if it cannot be started: that fails the test that asked.
Outcome RunProgram(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& environment = {});

// A stepcastd of its own, in memory, on a free port of the loopback unless told where; told to
// stop, and waited for, by the destructor.
class ServerProcess {
 public:
  // Serving when it returns. Throws as RunProgram does.
  explicit ServerProcess(const std::string& program, const std::string& listen = "127.0.0.1:0");
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& address() const { return address_; }

 private:
  int process_ = -1;
  int output_ = -1;
  std::string address_;
};

}  // namespace stepcast::client
