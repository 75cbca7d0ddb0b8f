// A throughput curve as an image.
#pragma once

#include <string>

#include "client/cli/plots/throughput_plot.h"

namespace stepcast::client {

// A whole SVG 1.1 file of 760 by 480 that refers to nothing outside: title, axes with ticks, the
// intervals as a band, linear scaling, legend. Points carry their numbers as titles, which browsers
// show.
std::string SvgPlot(const ThroughputPlot& plot);

}  // namespace stepcast::client
