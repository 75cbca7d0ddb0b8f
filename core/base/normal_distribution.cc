#include "core/base/normal_distribution.h"

#include <boost/math/distributions/normal.hpp>

namespace stepcast {

double NormalQuantile(double probability) {
  return boost::math::quantile(boost::math::normal(), probability);
}

double NormalCdf(double z) { return boost::math::cdf(boost::math::normal(), z); }

double NormalDensity(double z) { return boost::math::pdf(boost::math::normal(), z); }

}  // namespace stepcast
