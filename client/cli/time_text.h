// Instants, as people read them.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace stepcast::client {

// 2026-11-22 02:31:07Z, in UTC; `-` for none.
std::string TimeText(const std::optional<std::chrono::sys_time<std::chrono::nanoseconds>>& time);

}  // namespace stepcast::client
