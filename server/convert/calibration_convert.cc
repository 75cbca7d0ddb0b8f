#include "server/convert/calibration_convert.h"

#include <algorithm>

namespace stepcast::server {

namespace {

v1::ConfidenceInterval WireAround(double value, double half_width, double level) {
  v1::ConfidenceInterval wire;
  wire.set_lower(std::max(0.0, value - half_width));
  wire.set_upper(value + half_width);
  wire.set_level(level);
  return wire;
}

}  // namespace

FitParsingOverheadCall FromWire(const v1::FitParsingOverheadRequest& wire) {
  FitParsingOverheadCall call;
  call.draft.measurements.reserve(static_cast<size_t>(wire.measurements_size()));
  for (const v1::ParsingMeasurement& m : wire.measurements()) {
    call.draft.measurements.push_back({.size_bytes = m.size_bytes(), .seconds = m.seconds()});
  }
  if (wire.has_confidence_level()) call.draft.confidence_level = wire.confidence_level();
  return call;
}

v1::FitParsingOverheadResponse ToWire(const FitParsingOverheadAnswer& answer) {
  const MeasuredLine& fit = answer.answer.fit;
  const double level = answer.answer.confidence_level;
  v1::FitParsingOverheadResponse wire;
  wire.set_seconds_per_byte(fit.line.slope);
  wire.set_seconds(fit.line.offset);
  *wire.mutable_seconds_per_byte_interval() =
      WireAround(fit.line.slope, fit.half_width.slope, level);
  *wire.mutable_seconds_interval() = WireAround(fit.line.offset, fit.half_width.offset, level);
  wire.set_residual_seconds(fit.residual);
  wire.set_relative_residual(fit.relative_residual);
  wire.set_outliers(fit.outliers);
  wire.mutable_least_squares()->set_seconds_per_byte(answer.answer.least_squares.slope);
  wire.mutable_least_squares()->set_seconds(answer.answer.least_squares.offset);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
