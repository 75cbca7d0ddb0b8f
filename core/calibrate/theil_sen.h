// The line that half of the measurements cannot move far: where a robust fit starts.
//
// Source: Theil (1950) and Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau",
// JASA 1968: the median of all pairs' slopes, here each weighted by its distance in x, so that many
// measurements of one size say nothing. The offset is a median over the smaller half, where the
// noise is least. Cost: O(n log n) for up to 250,000 pairs; of more than 700 measurements, as many
// pairs drawn from a fixed seed.
#pragma once

#include <span>

#include "core/calibrate/measured_line.h"

namespace stepcast {

// REQUIRES: as FitRobustly.
Line TheilSenLine(std::span<const Measurement> measurements, LineShape shape);

}  // namespace stepcast
