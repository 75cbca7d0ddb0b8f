#include "client/cli/fit_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"

namespace stepcast::client {

namespace {

constexpr double kManyZeros = 0.1;

}  // namespace

std::string FitText(const FitParsingOverheadRequest& request,
                    const FitParsingOverheadResponse& response) {
  const std::vector<ParsingMeasurement>& measurements = request.measurements;
  const double microseconds = 1e6;
  const double nanoseconds_a_kilobyte = 1e12;
  std::string text = absl::StrFormat(
      "parsing: %.4g us a tensor (%.4g to %.4g) and %.4g ns a kB (%.4g to %.4g)\n",
      microseconds * response.seconds, microseconds * response.seconds_interval.lower,
      microseconds * response.seconds_interval.upper,
      nanoseconds_a_kilobyte * response.seconds_per_byte,
      nanoseconds_a_kilobyte * response.seconds_per_byte_interval.lower,
      nanoseconds_a_kilobyte * response.seconds_per_byte_interval.upper);
  absl::StrAppendFormat(
      &text,
      "         of %d measurements half are within %.3g us, or %.2g%%, of that; %d are outliers\n",
      measurements.size(), microseconds * response.residual_seconds,
      100 * response.relative_residual, response.outliers);
  const auto zeros = std::count_if(measurements.begin(), measurements.end(),
                                   [](const ParsingMeasurement& m) { return m.seconds <= 0; });
  if (static_cast<double>(zeros) > kManyZeros * static_cast<double>(measurements.size())) {
    absl::StrAppendFormat(&text,
                          "         %d took no time at all: of a profile's transfers, no more than "
                          "their bytes' at its bandwidth\n",
                          zeros);
  }
  absl::StrAppendFormat(&text, "         plain least squares would say %.4g us and %.4g ns a kB\n",
                        microseconds * response.least_squares.seconds,
                        nanoseconds_a_kilobyte * response.least_squares.seconds_per_byte);
  absl::StrAppendFormat(
      &text, "         use it with --parsing-seconds %.4g --parsing-seconds-per-byte %.4g\n",
      response.seconds, response.seconds_per_byte);
  return text;
}

}  // namespace stepcast::client
