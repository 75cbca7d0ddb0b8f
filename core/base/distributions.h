// The standard normal distribution, and Student's t: the confidence interval of a mean from a few
// independent values. No double makes any of these throw.
#pragma once

#include <vector>

namespace stepcast {

// The value that a standard normal one is below with that probability: infinite for 0 and 1, NaN
// for what is no probability.
double NormalQuantile(double probability);
// The probability of a value below z, and the density at z.
double NormalCdf(double z);
double NormalDensity(double z);

struct MeanInterval {
  double mean = 0;
  double half_width = 0;  // 0 with one value
};

// The half-width of a central interval of that probability, in standard errors; NaN where degrees
// are not above 0, or the level is no probability. Nothing throws.
double StudentTQuantile(int degrees, double level);

// Student's t interval that holds the mean of normally distributed values with probability `level`.
// REQUIRES: !values.empty(), 0 < level < 1.
MeanInterval StudentT(const std::vector<double>& values, double level);

// The ratio of the means of values in pairs, and Student's t interval of its logarithm, by what
// each pair departs from that ratio (the delta method). Of one pair the interval has no width.
struct PairedRatio {
  double ratio = 1;
  double half_width = 0;  // of the logarithm

  double lower() const;
  double upper() const;
};

// The ratio of the means of all. The first values of both are the pairs, as many as the shorter one
// has. REQUIRES: one at least, all above 0; 0 < level < 1.
PairedRatio RatioOfMeans(const std::vector<double>& with, const std::vector<double>& without,
                         double level);
// The same of the pairs alone.
PairedRatio RatioOfPairs(std::vector<double> with, std::vector<double> without, double level);

}  // namespace stepcast
