#include "client/cli/fit_command.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/fit_text.h"
#include "client/cli/measurement_file.h"
#include "client/cli/profile_argument.h"
#include "client/cli/progress.h"
#include "client/local/recording_report.h"

#include "stepcast/json.h"
#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

class FitCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "fit", "Fit what a receiver's parsing costs, a tensor and a byte, to measurements");
    app->add_option("FILE", path_,
                    "Lines of size_bytes,seconds; or a profile, of which those transfers are taken "
                    "that nothing held up: what they took beyond their "
                    "bytes' time holds their start, too")
        ->required()
        ->type_name("");
    app->add_option("--level", level_, "Probability of the intervals (default 0.95)")
        ->type_name("P");
    return app;
  }

  bool NeedsNoServer() const override { return true; }

  ExitCode Run(const Session& session) const override {
    if (!IsFile(path_)) return session.Misused(absl::StrCat("there is no file \"", path_, "\""));
    absl::StatusOr<std::vector<ParsingMeasurement>> measurements = Measurements();
    if (!measurements.ok()) return session.Refused(measurements.status());
    const FitParsingOverheadRequest request{.measurements = *std::move(measurements),
                                            .confidence_level = level_};
    const absl::StatusOr<FitParsingOverheadResponse> response = [&] {
      const Progress progress(session.console, "fitting");
      return session.client.FitParsingOverhead(request);
    }();
    if (!response.ok()) return session.Refused(response.status());
    return session.Answer(ToJson(*response), [&] { return FitText(request, *response); });
  }

 private:
  absl::StatusOr<std::vector<ParsingMeasurement>> Measurements() const {
    const absl::StatusOr<std::string> bytes = ReadFile(path_);
    if (!bytes.ok()) return bytes.status();
    return LooksLikeMeasurements(*bytes) ? ParseMeasurements(*bytes) : LoneTransfers(*bytes);
  }

  std::string path_;
  std::optional<double> level_;
};

}  // namespace

std::unique_ptr<Command> MakeFitCommand() { return std::make_unique<FitCommand>(); }

}  // namespace stepcast::client
