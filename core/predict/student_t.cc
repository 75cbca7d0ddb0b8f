#include "core/predict/student_t.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace stepcast {

MeanInterval StudentT(const std::vector<double>& values, double level) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  if (values.size() == 1) return {.mean = mean};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double standard_error = std::sqrt(squares / (count - 1) / count);
  const double quantile = boost::math::quantile(boost::math::students_t(count - 1), 0.5 + level / 2);
  return {.mean = mean, .half_width = quantile * standard_error};
}

}  // namespace stepcast
