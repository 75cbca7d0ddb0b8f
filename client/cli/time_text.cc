#include "client/cli/time_text.h"

#include <array>
#include <ctime>

namespace stepcast::client {

std::string TimeText(const std::optional<std::chrono::sys_time<std::chrono::nanoseconds>>& time) {
  if (!time) return "-";
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(*time).time_since_epoch().count();
  std::tm parts{};
  std::array<char, 64> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "-";
  return std::string(text.data(),
                     std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%SZ", &parts));
}

}  // namespace stepcast::client
