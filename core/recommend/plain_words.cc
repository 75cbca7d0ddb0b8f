#include "core/recommend/plain_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stepcast {

namespace {

constexpr double kMinute = 60;
constexpr double kHour = 3600;
constexpr double kDay = 86400;
// A time is given in a unit from two of it on.
constexpr double kUnitsBeforeTheNext = 2;

}  // namespace

std::string CountText(int32_t count, std::string_view noun) {
  return absl::StrCat(count, " ", absl::string_view(noun.data(), noun.size()),
                      count == 1 ? "" : "s");
}

std::string TimeText(double seconds) {
  if (seconds < kUnitsBeforeTheNext * kMinute) return absl::StrFormat("%.3g s", seconds);
  if (seconds < kUnitsBeforeTheNext * kHour) return absl::StrFormat("%.3g min", seconds / kMinute);
  if (seconds < kUnitsBeforeTheNext * kDay) return absl::StrFormat("%.3g h", seconds / kHour);
  return absl::StrFormat("%.3g d", seconds / kDay);
}

}  // namespace stepcast
