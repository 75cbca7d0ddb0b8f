// JSON written by hand in the form of the replies' (stepcast/json.h): one space a level, 64-bit
// integers as strings, whole numbers without a point.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

inline nlohmann::ordered_json CountJson(int64_t count) { return std::to_string(count); }

// REQUIRES: a finite number.
inline nlohmann::ordered_json NumberJson(double number) {
  constexpr double kMaxWhole = 9007199254740992.0;  // 2^53
  if (number == std::floor(number) && std::fabs(number) < kMaxWhole)
    return static_cast<int64_t>(number);
  return number;
}

inline std::string JsonText(const nlohmann::ordered_json& json) {
  constexpr int kIndent = 1;
  return json.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// A failure within a reply that has others.
inline nlohmann::ordered_json ErrorObject(const absl::Status& status) {
  const ErrorDetails details = GetErrorDetails(status);
  const absl::string_view message = status.message();
  nlohmann::ordered_json object{{"code", absl::StatusCodeToString(status.code())},
                                {"reason", details.reason},
                                {"message", std::string(message)},
                                {"violations", nlohmann::ordered_json::array()}};
  for (const FieldViolation& violation : details.violations) {
    object["violations"].push_back(
        {{"field", violation.field}, {"description", violation.description}});
  }
  return object;
}

}  // namespace stepcast::client
