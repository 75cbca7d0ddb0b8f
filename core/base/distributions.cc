#include "core/base/distributions.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/policies/policy.hpp>
#include <cmath>
#include <cstddef>

namespace stepcast {

namespace {

// The policy under which Boost's distributions are asked. Nothing is thrown: what is not defined is
// NaN, what is out of range infinite.
using QuietMath = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>,
    boost::math::policies::rounding_error<boost::math::policies::ignore_error>>;

using Normal = boost::math::normal_distribution<double, QuietMath>;

}  // namespace

double NormalQuantile(double probability) { return boost::math::quantile(Normal(), probability); }

double NormalCdf(double z) { return boost::math::cdf(Normal(), z); }

double NormalDensity(double z) { return boost::math::pdf(Normal(), z); }

double StudentTQuantile(int degrees, double level) {
  // Quantiles found last, by their degrees: a request asks for few of them, hundreds of times, and
  // each takes microseconds to find.
  struct Found {
    int degrees = 0;
    double level = 0;
    double quantile = 0;
  };
  constexpr size_t kKept = 32;
  thread_local std::array<Found, kKept> known;
  Found& found = known[static_cast<size_t>(degrees) % kKept];
  if (found.degrees != degrees || found.level != level) {
    found = {
        .degrees = degrees,
        .level = level,
        .quantile = boost::math::quantile(
            boost::math::students_t_distribution<double, QuietMath>(degrees), 0.5 + level / 2)};
  }
  return found.quantile;
}

MeanInterval StudentT(const std::vector<double>& values, double level) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  if (values.size() == 1) return {.mean = mean};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double standard_error = std::sqrt(squares / (count - 1) / count);
  return {
      .mean = mean,
      .half_width = StudentTQuantile(static_cast<int>(values.size()) - 1, level) * standard_error};
}

double PairedRatio::lower() const { return ratio * std::exp(-half_width); }
double PairedRatio::upper() const { return ratio * std::exp(half_width); }

PairedRatio RatioOfMeans(const std::vector<double>& with, const std::vector<double>& without,
                         double level) {
  const double of_with = StudentT(with, level).mean;
  const double of_without = StudentT(without, level).mean;
  std::vector<double> departures;
  for (size_t i = 0; i < std::min(with.size(), without.size()); ++i)
    departures.push_back(with[i] / of_with - without[i] / of_without);
  return {.ratio = of_with / of_without, .half_width = StudentT(departures, level).half_width};
}

PairedRatio RatioOfPairs(std::vector<double> with, std::vector<double> without, double level) {
  const size_t pairs = std::min(with.size(), without.size());
  with.resize(pairs);
  without.resize(pairs);
  return RatioOfMeans(with, without, level);
}

}  // namespace stepcast
