// The flag `--plot`: the throughput curve, drawn below the table or to a file.
#pragma once

#include <optional>
#include <string>

#include "client/cli/plots/throughput_plot.h"
#include "client/cli/session.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

// The title of a plot of the job that a request is about: the profile's model, else its display
// name, of a stored profile its name.
template <typename Request>
std::string PlotTitle(const Request& request) {
  if (!request.has_inline_profile()) return request.profile();
  const std::string& model = request.inline_profile().model();
  return model.empty() ? request.inline_profile().display_name() : model;
}

class PlotFlag {
 public:
  // This outlives the parse.
  void Declare(CLI::App& app);

  bool given() const { return place_.has_value(); }
  // Checks that there would be nothing but JSON where JSON is asked for: kDone, or kMisused,
  // reported.
  ExitCode Check(const Session& session) const;
  // The text below the table: an empty line and the plot, where it was asked for in the terminal.
  std::string Text(const Session& session, const ThroughputPlot& plot) const;
  // Writes the file, where one was asked for. kRefused, reported, where it cannot be written.
  ExitCode Save(const Session& session, const ThroughputPlot& plot) const;

 private:
  std::optional<std::string> place_;  // empty: the terminal
};

}  // namespace stepcast::client
