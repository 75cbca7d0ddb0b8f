#include "tests/bench/memory_growth.h"

#include <malloc.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/bench/child_process.h"

namespace stepcast::bench {

namespace {

// A line of /proc/self/status, in bytes.
int64_t StatusBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kibibytes = 0;
    if (word == name + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  throw std::runtime_error("/proc/self/status has no " + name);
}

}  // namespace

int64_t PeakGrowthBytes(const std::function<void()>& compute) {
  return std::stoll(InChildProcess([&] {
    malloc_trim(0);
    const int64_t before = StatusBytes("VmRSS");
    // Makes the peak so far what is resident now.
    if (!(std::ofstream("/proc/self/clear_refs") << "5" << std::flush))
      throw std::runtime_error("/proc/self/clear_refs cannot be written");
    compute();
    return std::to_string(StatusBytes("VmHWM") - before);
  }));
}

}  // namespace stepcast::bench
