// The standard normal distribution: of mean 0 and variance 1.
#pragma once

namespace stepcast {

// The value that a standard normal one is below with that probability. REQUIRES: 0 < probability <
// 1.
double NormalQuantile(double probability);
// The probability of a value below z, and the density at z.
double NormalCdf(double z);
double NormalDensity(double z);

}  // namespace stepcast
