// What measurements say about a platform: request and reply of Client::FitParsingOverhead.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/calibration.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/prediction.h"

namespace stepcast::client {

struct ParsingMeasurement {
  int64_t size_bytes = 0;
  double seconds = 0;

  friend bool operator==(const ParsingMeasurement&, const ParsingMeasurement&) = default;
};

struct FitParsingOverheadRequest {
  std::vector<ParsingMeasurement> measurements;
  std::optional<double> confidence_level;  // 0.95

  friend bool operator==(const FitParsingOverheadRequest&,
                         const FitParsingOverheadRequest&) = default;
};

struct LeastSquaresLine {
  double seconds_per_byte = 0;
  double seconds = 0;

  friend bool operator==(const LeastSquaresLine&, const LeastSquaresLine&) = default;
};

struct FitParsingOverheadResponse {
  double seconds_per_byte = 0;
  double seconds = 0;
  ConfidenceInterval seconds_per_byte_interval;
  ConfidenceInterval seconds_interval;
  double residual_seconds = 0;
  double relative_residual = 0;
  int32_t outliers = 0;
  LeastSquaresLine least_squares;  // without bounds or care for outliers
  std::string engine_version;

  friend bool operator==(const FitParsingOverheadResponse&,
                         const FitParsingOverheadResponse&) = default;
};

}  // namespace stepcast::client
