// A stepcastd of its own: a child process on free ports of the loopback, with its profiles in
// memory, and what the system says of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::bench {

class ServerProcess {
 public:
  // Serving when it returns. Throws std::runtime_error where it does not start, as do the others
  // where the system does not tell.
  explicit ServerProcess(const std::vector<std::string>& flags = {});
  // Tells it to stop and waits for its end.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& address() const { return address_; }

  // Processor time of all its threads so far.
  double CpuNs() const;
  int64_t ResidentBytes() const;
  // The most since it began, or since the peak was last forgotten.
  int64_t PeakResidentBytes() const;
  void ForgetPeak() const;

 private:
  int process_ = -1;
  int output_ = -1;
  std::string address_;
};

}  // namespace stepcast::bench
