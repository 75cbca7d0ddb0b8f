// The flag `--plot`: whether, and where, the throughput curve is drawn.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>

#include "client/cli/exit_code.h"
#include "client/cli/session.h"
#include "client/cli/throughput_plot.h"

namespace stepcast::client {

// What a plot of this job is called: the profile's model, else its display name, of a stored
// profile its name.
std::string PlotTitle(const ProfileSource& source);

class PlotFlag {
 public:
  // This outlives the parse.
  void Declare(CLI::App& app);

  bool given() const { return place_.has_value(); }
  // Whether there would be nothing but JSON where JSON is asked for: kDone, or kMisused, reported.
  ExitCode Check(const Session& session) const;
  // What follows the table: an empty line and the plot, where it was asked for in the terminal.
  std::string Text(const Session& session, const ThroughputPlot& plot) const;
  // Writes the file, where one was asked for. kRefused, reported, where it cannot be written.
  ExitCode Save(const Session& session, const ThroughputPlot& plot) const;

 private:
  std::optional<std::string> place_;  // empty: the terminal
};

}  // namespace stepcast::client
