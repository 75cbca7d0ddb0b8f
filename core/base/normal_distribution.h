// The standard normal distribution: of mean 0 and variance 1. No double makes any of these throw.
#pragma once

namespace stepcast {

// The value that a standard normal one is below with that probability: infinite for 0 and 1, NaN
// for what is no probability.
double NormalQuantile(double probability);
// The probability of a value below z, and the density at z.
double NormalCdf(double z);
double NormalDensity(double z);

}  // namespace stepcast
