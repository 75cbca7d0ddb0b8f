// `profile check`: everything that is wrong with a profile, and how well its steps are explained.
#include <CLI/App.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/progress.h"

#include "server/local/recording_report.h"

namespace stepcast::client {

namespace {

class CheckCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("check",
                              "Say everything that is wrong with a profile, how well its steps are "
                              "explained, and what to do; stores nothing");
    app->add_option("FILE", path_, kProfileFileHelp)->required()->type_name("");
    app->add_flag("--details", details_,
                  "Also each link's bandwidth, start and window, how well each way of sharing it "
                  "explains the recording, and each recorded step's scheduling efficiency");
    return app;
  }

  bool NeedsNoServer() const override { return true; }

  ExitCode Run(const Session& session) const override {
    if (!IsFile(path_)) return session.Misused(WhyNoFile(path_));
    const absl::StatusOr<std::string> bytes = ReadProfileBytes(path_);
    if (!bytes.ok()) return session.Refused(bytes.status());
    const absl::StatusOr<v1::Profile> recording = ParseProfileInput(*bytes, path_);
    if (!recording.ok()) return session.Refused(recording.status());
    const absl::StatusOr<v1::Profile> profile = Validate(session, *bytes);
    if (!profile.ok()) return session.Refused(profile.status());
    const absl::StatusOr<server::RecordingReport> explained = Explain(session, *recording);
    if (!explained.ok()) return session.Refused(explained.status());
    return session.Answer(CheckJson(*profile, *explained), [&] {
      return absl::StrCat("valid: ", profile->operation_count(), " operations, ",
                          profile->step_count(), " steps, digest ", profile->digest(), "\n",
                          CheckSummary(*explained), details_ ? CheckDetails(*explained) : "");
    });
  }

 private:
  static absl::StatusOr<v1::Profile> Validate(const Session& session, const std::string& bytes) {
    const Progress progress(session.console, "checking");
    v1::UploadProfileRequest::Header header;
    header.set_validate_only(true);
    return session.client.UploadProfileBytes(bytes, header);
  }

  static absl::StatusOr<server::RecordingReport> Explain(const Session& session,
                                                         const v1::Profile& recording) {
    const Progress progress(session.console, "replaying");
    return server::ReportRecording(recording);
  }

  std::string path_;
  bool details_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCheckCommand() { return std::make_unique<CheckCommand>(); }

}  // namespace stepcast::client
