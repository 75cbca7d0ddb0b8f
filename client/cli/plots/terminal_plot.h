// A throughput curve, drawn with characters.
#pragma once

#include <string>

#include "client/cli/plots/throughput_plot.h"
#include "client/cli/session.h"

namespace stepcast::client {

// Title, 16 rows of plot, axes and legend, in lines that are no wider than the terminal; a terminal
// of less than 40 columns counts as 40, one of more than 160 as 160. With UTF-8 lines are dots of
// Braille, two across and four down a character; without it there is ASCII only, and no line from
// point to point.
std::string TerminalPlot(const ThroughputPlot& plot, const Terminal& terminal);

}  // namespace stepcast::client
