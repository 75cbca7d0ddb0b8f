// `trace`: the first steps, chunk by chunk, as a file for ui.perfetto.dev.
#include <CLI/App.hpp>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/texts/progress.h"

namespace stepcast::client {

namespace {

// The destination of a trace. A file is opened with the first piece, so that a refused request
// leaves its content alone.
class TraceFile {
 public:
  TraceFile(std::string path, std::ostream& standard_output)
      : path_(std::move(path)), out_(path_ == kStandardOutput ? &standard_output : nullptr) {}

  absl::Status Write(std::string_view piece) {
    if (out_ == nullptr) {
      file_.open(path_, std::ios::binary | std::ios::trunc);
      out_ = &file_;
    }
    out_->write(piece.data(), static_cast<std::streamsize>(piece.size()));
    return Checked();
  }
  absl::Status Close() {
    if (out_ == nullptr) return absl::OkStatus();
    out_->flush();
    return Checked();
  }
  bool begun() const { return out_ != nullptr; }

 private:
  absl::Status Checked() const {
    return out_->good() ? absl::OkStatus()
                        : absl::DataLossError(absl::StrCat("cannot write ", path_));
  }

  const std::string path_;
  std::ofstream file_;
  std::ostream* out_;  // null: the file is not open yet
};

class TraceCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("trace",
                              "What the first steps look like, chunk by chunk, as JSON for "
                              "ui.perfetto.dev;\n--output does not apply, a trace is "
                              "always JSON");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    CLI::Option* workers =
        app->add_option("--workers", workers_, "Number of workers (default 1)")->type_name("N");
    RefuseZero(*workers);
    app->add_flag("--recording", recording_,
                  "The recording of several workers that the profile holds, as it was recorded, "
                  "its clocks aligned")
        ->excludes(workers);
    app->add_flag(
        "--no-critical-path", no_critical_path_,
        "Without the critical path through all workers, which takes memory (pipelines have "
        "none)");
    app->add_option("--out", out_, "Where the trace goes (default -, standard output)")
        ->type_name("FILE");
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
    simulation_.DeclareForTrace(*app);
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  ExitCode Run(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return ReportProfileFailure(session, profile_, source.status());
    scenario_.Explain(session);
    v1::GenerateTraceRequest request;
    SetSource(*std::move(source), request);
    // Nothing is assumed of a recording; the service refuses what was asked for.
    *request.mutable_scenario() = recording_ ? scenario_.scenario() : scenario_.With(workers_);
    *request.mutable_options() = simulation_.options();
    // No path is followed through pipelines.
    request.set_critical_path(!no_critical_path_ && request.scenario().pipeline().stages() == 0);
    request.set_recording(recording_);
    TraceFile file(out_, session.console.out);
    absl::Status status = [&] {
      const Progress progress(session.console, "tracing");
      return session.client.GenerateTrace(
          request, [&file](std::string_view piece) { return file.Write(piece); });
    }();
    if (status.ok()) status = file.Close();
    if (status.ok()) return ExitCode::kDone;
    if (file.begun() && out_ != kStandardOutput)
      session.console.err << out_ << " holds only a part of the trace\n";
    return ReportProfileFailure(session, profile_, status);
  }

 private:
  std::string profile_;
  int32_t workers_ = 1;
  bool recording_ = false;
  bool no_critical_path_ = false;
  std::string out_ = kStandardOutput;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceCommand() { return std::make_unique<TraceCommand>(); }

}  // namespace stepcast::client
