// `profile fit`: a parsing overhead from measurements.
#include <CLI/App.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/input_files.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/progress.h"

#include "server/local/recording_report.h"
#include "stepcast/json.h"

namespace stepcast::client {

namespace {

constexpr double kManyZeros = 0.1;

class FitCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "fit", "Fit what a receiver's parsing costs, a tensor and a byte, to measurements");
    app->add_option("FILE", path_,
                    "Lines of size_bytes,seconds; or a profile, of which those transfers are taken "
                    "that nothing held up: what they took beyond their "
                    "bytes' time holds their start, too; -: standard input")
        ->required()
        ->type_name("");
    app->add_option("--level", level_, "Probability of the intervals (default 0.95)")
        ->type_name("P");
    return app;
  }

  bool NeedsNoServer() const override { return true; }

  ExitCode Run(const Session& session) const override {
    if (!IsFile(path_)) return session.Misused(WhyNoFile(path_));
    const absl::StatusOr<v1::FitParsingOverheadRequest> request = Request();
    if (!request.ok()) return session.Refused(request.status());
    const absl::StatusOr<v1::FitParsingOverheadResponse> response = [&] {
      const Progress progress(session.console, "fitting");
      return session.client.FitParsingOverhead(*request);
    }();
    if (!response.ok()) return session.Refused(response.status());
    return session.Answer(ToJson(*response), [&] { return FitText(*request, *response); });
  }

 private:
  absl::StatusOr<v1::FitParsingOverheadRequest> Request() const {
    const absl::StatusOr<std::vector<v1::ParsingMeasurement>> measurements = Measurements();
    if (!measurements.ok()) return measurements.status();
    v1::FitParsingOverheadRequest request;
    request.mutable_measurements()->Assign(measurements->begin(), measurements->end());
    if (level_) request.set_confidence_level(*level_);
    return request;
  }

  absl::StatusOr<std::vector<v1::ParsingMeasurement>> Measurements() const {
    const absl::StatusOr<std::string> bytes = ReadProfileBytes(path_);
    if (!bytes.ok()) return bytes.status();
    if (LooksLikeMeasurements(*bytes)) return ParseMeasurements(*bytes);
    const absl::StatusOr<v1::Profile> recording = ParseProfileInput(*bytes, path_);
    if (!recording.ok()) return recording.status();
    return server::LoneTransfers(*recording);
  }

  std::string path_;
  std::optional<double> level_;
};

}  // namespace

std::string FitText(const v1::FitParsingOverheadRequest& request,
                    const v1::FitParsingOverheadResponse& response) {
  const auto& measurements = request.measurements();
  const double microseconds = 1e6;
  const double nanoseconds_a_kilobyte = 1e12;
  std::string text = absl::StrFormat(
      "parsing: %.4g us a tensor (%.4g to %.4g) and %.4g ns a kB (%.4g to %.4g)\n",
      microseconds * response.seconds(), microseconds * response.seconds_interval().lower(),
      microseconds * response.seconds_interval().upper(),
      nanoseconds_a_kilobyte * response.seconds_per_byte(),
      nanoseconds_a_kilobyte * response.seconds_per_byte_interval().lower(),
      nanoseconds_a_kilobyte * response.seconds_per_byte_interval().upper());
  absl::StrAppendFormat(
      &text,
      "         of %d measurements half are within %.3g us, or %.2g%%, of that; %d are outliers\n",
      measurements.size(), microseconds * response.residual_seconds(),
      100 * response.relative_residual(), response.outliers());
  const auto zeros =
      std::count_if(measurements.begin(), measurements.end(),
                    [](const v1::ParsingMeasurement& m) { return m.seconds() <= 0; });
  if (static_cast<double>(zeros) > kManyZeros * static_cast<double>(measurements.size())) {
    absl::StrAppendFormat(&text,
                          "         %d took no time at all: of a profile's transfers, no more than "
                          "their bytes' at its bandwidth\n",
                          zeros);
  }
  absl::StrAppendFormat(&text, "         plain least squares would say %.4g us and %.4g ns a kB\n",
                        microseconds * response.least_squares().seconds(),
                        nanoseconds_a_kilobyte * response.least_squares().seconds_per_byte());
  absl::StrAppendFormat(
      &text, "         use it with --parsing-seconds %.4g --parsing-seconds-per-byte %.4g\n",
      response.seconds(), response.seconds_per_byte());
  return text;
}

std::unique_ptr<Command> MakeFitCommand() { return std::make_unique<FitCommand>(); }

}  // namespace stepcast::client
