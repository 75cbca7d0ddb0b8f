#include "client/src/convert/calibration_proto.h"

#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/repeated.h"

namespace stepcast::client {

namespace {

void ToProto(const ParsingMeasurement& from, v1::ParsingMeasurement& to) {
  to.set_size_bytes(from.size_bytes);
  to.set_seconds(from.seconds);
}

}  // namespace

void ToProto(const FitParsingOverheadRequest& from, v1::FitParsingOverheadRequest& to) {
  for (const ParsingMeasurement& measurement : from.measurements)
    ToProto(measurement, *to.add_measurements());
  if (from.confidence_level) to.set_confidence_level(*from.confidence_level);
}

void ToProto(const FitParsingOverheadResponse& from, v1::FitParsingOverheadResponse& to) {
  to.set_seconds_per_byte(from.seconds_per_byte);
  to.set_seconds(from.seconds);
  ToProto(from.seconds_per_byte_interval, *to.mutable_seconds_per_byte_interval());
  ToProto(from.seconds_interval, *to.mutable_seconds_interval());
  to.set_residual_seconds(from.residual_seconds);
  to.set_relative_residual(from.relative_residual);
  to.set_outliers(from.outliers);
  to.mutable_least_squares()->set_seconds_per_byte(from.least_squares.seconds_per_byte);
  to.mutable_least_squares()->set_seconds(from.least_squares.seconds);
  to.set_engine_version(from.engine_version);
}

void FromProto(const v1::FitParsingOverheadResponse& from, FitParsingOverheadResponse& to) {
  to.seconds_per_byte = from.seconds_per_byte();
  to.seconds = from.seconds();
  FromProto(from.seconds_per_byte_interval(), to.seconds_per_byte_interval);
  FromProto(from.seconds_interval(), to.seconds_interval);
  to.residual_seconds = from.residual_seconds();
  to.relative_residual = from.relative_residual();
  to.outliers = from.outliers();
  to.least_squares = {.seconds_per_byte = from.least_squares().seconds_per_byte(),
                      .seconds = from.least_squares().seconds()};
  to.engine_version = from.engine_version();
}

}  // namespace stepcast::client
