// Predictions as no service should make them, for tests of what draws them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "stepcast/v1/prediction.pb.h"

namespace stepcast::client {

// Up to 24 predictions of one scale between 1e-8 and 1e14 examples/s, in any order, counts up to 60
// more than once, with intervals of any width or none, some of them zero, negative, infinite or no
// number.
inline google::protobuf::RepeatedPtrField<v1::Prediction> RandomCurve(uint32_t seed) {
  std::mt19937 random(seed);
  const auto share = [&random] { return static_cast<double>(random()) / 4294967296.0; };
  const double scale = std::pow(10, share() * 22 - 8);
  const int32_t most_workers = random() % 2 == 0 ? 24 : 60;
  google::protobuf::RepeatedPtrField<v1::Prediction> curve;
  for (auto left = random() % 25; left > 0; --left) {
    v1::Prediction& prediction = *curve.Add();
    const auto workers = static_cast<int32_t>(random() % static_cast<uint32_t>(most_workers)) + 1;
    prediction.mutable_scenario()->set_workers(workers);
    double value = share() * scale;
    const uint32_t kind = random() % 20;
    if (kind == 0) value = 0;
    if (kind == 1) value = -value;
    if (kind == 2) value = std::numeric_limits<double>::quiet_NaN();
    if (kind == 3) value = std::numeric_limits<double>::infinity();
    prediction.set_examples_per_second(value);
    v1::ConfidenceInterval& interval = *prediction.mutable_confidence_interval();
    interval.set_lower(value - share() * scale * 0.2);
    interval.set_upper(value + share() * scale * 0.2);
    interval.set_level(0.95);
    if (kind == 4) interval.Clear();
    prediction.set_speedup(kind == 5 ? 0 : share() * workers);
    prediction.set_scaling_efficiency(prediction.speedup() / workers);
  }
  return curve;
}

}  // namespace stepcast::client
