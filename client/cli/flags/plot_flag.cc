#include "client/cli/flags/plot_flag.h"

#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/flags/parsed_option.h"
#include "client/cli/plots/svg_plot.h"
#include "client/cli/plots/terminal_plot.h"

namespace stepcast::client {

namespace {

// A name without the ending is more likely the PROFILE, which must not be written over.
absl::StatusOr<std::string> ParsePlace(const std::string& text) {
  if (text.empty() || absl::EndsWith(text, ".svg")) return text;
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" does not end in .svg; a plot in the terminal is asked for after PROFILE"));
}

}  // namespace

void PlotFlag::Declare(CLI::App& app) {
  AddParsedOption(app, "--plot", "[FILE.svg]",
                  "Draw examples/s over workers: below the table,\nin UTF-8 where the locale has "
                  "it, or as an image to this file",
                  ParsePlace, [this](std::string place) { place_ = std::move(place); })
      ->expected(0, 1);
}

ExitCode PlotFlag::Check(const Session& session) const {
  if (place_ != "" || session.output != OutputFormat::kJson) return ExitCode::kDone;
  return session.Misused(
      "--plot: with --output json it needs a FILE.svg, a plot in the terminal is not JSON");
}

std::string PlotFlag::Text(const Session& session, const ThroughputPlot& plot) const {
  return place_ == "" ? absl::StrCat("\n", TerminalPlot(plot, session.console.terminal)) : "";
}

ExitCode PlotFlag::Save(const Session& session, const ThroughputPlot& plot) const {
  if (!place_ || place_->empty()) return ExitCode::kDone;
  std::ofstream file(*place_, std::ios::binary | std::ios::trunc);
  file << SvgPlot(plot) << std::flush;
  return file ? ExitCode::kDone
              : session.Refused(absl::DataLossError(absl::StrCat("cannot write ", *place_)));
}

}  // namespace stepcast::client
