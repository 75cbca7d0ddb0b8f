#include "core/model/platform_rules.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/bandwidth.h"

namespace stepcast {

namespace {

std::string Below(std::string_view path, const char* field) {
  return std::string(path).append(".").append(field);
}

void CheckCoefficient(std::string path, double value, double max, FaultList& faults) {
  if (!std::isfinite(value)) {
    faults.Add(std::move(path), absl::StrCat(value, " is not a finite number"));
  } else if (value < 0) {
    faults.Add(std::move(path), absl::StrCat(value, " is a negative time"));
  } else if (value > max) {
    faults.Add(std::move(path), absl::StrCat(value, " is above the maximum of ", max));
  }
}

}  // namespace

void CheckBandwidth(std::string_view path, double bytes_per_second, FaultList& faults) {
  if (!std::isfinite(bytes_per_second)) {
    faults.Add(std::string(path), absl::StrCat(bytes_per_second, " is not a finite number"));
  } else if (bytes_per_second < Bandwidth::kMinBytesPerSecond ||
             bytes_per_second > Bandwidth::kMaxBytesPerSecond) {
    faults.Add(std::string(path),
               absl::StrCat(bytes_per_second, " is not from ", Bandwidth::kMinBytesPerSecond,
                            " to ", Bandwidth::kMaxBytesPerSecond, " bytes per second"));
  }
}

void CheckParsingOverhead(std::string_view path, const ParsingOverhead& overhead,
                          FaultList& faults) {
  CheckCoefficient(Below(path, "seconds_per_byte"), overhead.seconds_per_byte,
                   kMaxOverheadSecondsPerByte, faults);
  CheckCoefficient(Below(path, "seconds"), overhead.seconds, kMaxOverheadSeconds, faults);
}

void CheckPlatform(std::string_view path, const Platform& platform, FaultList& faults) {
  CheckBandwidth(Below(path, "bandwidth_bytes_per_second"), platform.bandwidth_bytes_per_second,
                 faults);
  CheckParsingOverhead(Below(path, "parsing_overhead"), platform.parsing_overhead, faults);
  if (platform.window_bytes < 0)
    faults.Add(Below(path, "window_bytes"),
               absl::StrCat(platform.window_bytes, " is a negative size"));
}

}  // namespace stepcast
