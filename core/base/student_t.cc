#include "core/base/student_t.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace stepcast {

double StudentTQuantile(int degrees, double level) {
  return boost::math::quantile(boost::math::students_t(degrees), 0.5 + level / 2);
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

}  // namespace stepcast
