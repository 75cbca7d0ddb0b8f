#include "core/base/normal_distribution.h"

#include <boost/math/distributions/normal.hpp>

#include "core/base/quiet_math.h"

namespace stepcast {

namespace {

using Normal = boost::math::normal_distribution<double, QuietMath>;

}  // namespace

double NormalQuantile(double probability) { return boost::math::quantile(Normal(), probability); }

double NormalCdf(double z) { return boost::math::cdf(Normal(), z); }

double NormalDensity(double z) { return boost::math::pdf(Normal(), z); }

}  // namespace stepcast
