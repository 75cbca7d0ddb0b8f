#include "client/cli/import_commands.h"

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/parsed_option.h"
#include "client/cli/platform_flags.h"
#include "client/cli/profile_argument.h"
#include "client/cli/profile_table.h"
#include "client/cli/progress.h"
#include "client/cli/quantity.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

// What both imports share: where the profile goes, and how its steps vary.
class ImportFlags {
 public:
  void Declare(CLI::App& app) {
    app.add_option("--id", options_.store.profile_id, "Name of the profile: a-z, 0-9 and - (default: from its content)")->type_name("ID");
    app.add_option("--display-name", options_.display_name, "Text for people (default: the model's name)")->type_name("TEXT");
    app.add_option_function<std::vector<std::string>>(
           "--label", [this](const auto& texts) { AddLabels(texts); }, "For filters; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    app.add_option("--save", save_, "Write the profile to this file, in proto JSON, and store nothing")->type_name("FILE");
    app.add_option("--variation", variation_, "Standard deviation of a computation's time, as a share of it (default 0: one step)")
        ->type_name("SHARE");
    app.add_option("--steps", steps_, "Steps to make when there is variation (default 20)")->type_name("N");
    AddParsedOption(
        app, "--seed", "N", "Of the variation (default 1)", [](const std::string& text) { return ParseCount(text); },
        [this](uint64_t seed) { seed_ = seed; });
    platform_.Declare(app);
  }

  template <typename Format>
  void Fill(Format& format) const {
    format.platform = platform_.platform();
    format.step_time_variation = variation_;
    format.steps = steps_;
    format.seed = seed_;
  }

  ImportOptions Options(const Session& session) const {
    ImportOptions options = options_;
    options.store.validate_only = session.local || !save_.empty();
    return options;
  }

  ExitCode Finish(const Session& session, const absl::StatusOr<ImportProfileResponse>& response) const {
    if (!response.ok()) return session.Refused(response.status());
    if (!save_.empty() && !Save(ToJson(response->profile))) return session.Misused(absl::StrCat("cannot write ", save_));
    return session.Answer(ToJson(*response), [&] {
      std::string text = ProfileText(response->profile);
      for (const std::string& note : response->notes) absl::StrAppend(&text, "note: ", note, "\n");
      if (!save_.empty()) absl::StrAppend(&text, "saved: ", save_, "\n");
      return text;
    });
  }

 private:
  void AddLabels(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos) throw CLI::ValidationError("--label", absl::StrCat("\"", text, "\" is not KEY=VALUE"));
      options_.labels[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }

  bool Save(const std::string& json) const {
    std::ofstream file(save_, std::ios::binary | std::ios::trunc);
    file << json;
    file.close();
    return !file.fail();
  }

  ImportOptions options_;
  std::string save_;
  double variation_ = 0;
  std::optional<int32_t> steps_;
  std::optional<uint64_t> seed_;
  PlatformFlags platform_;
};

class ImportCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("import", "Make a profile of measured times per layer, and store it");
    app->add_option("FILE", path_, "Text of lines `nodeK -- Op -- key=value, ...` and edges between the nodes")->required()->type_name("");
    app->add_option("--batch-size", layers_.batch_size, "Examples per step of the measurement")->type_name("N")->required();
    app->add_option("--model", layers_.model, "Becomes the profile's model")->type_name("TEXT");
    flags_.Declare(*app);
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (!IsFile(path_)) return session.Misused(absl::StrCat("there is no file \"", path_, "\""));
    const absl::StatusOr<std::string> text = ReadFile(path_);
    if (!text.ok()) return session.Refused(text.status());
    LayerProfileOptions layers = layers_;
    flags_.Fill(layers);
    const auto response = [&] {
      const Progress progress(session.console, "importing");
      return session.client.ImportLayerProfile(*text, layers, flags_.Options(session));
    }();
    return flags_.Finish(session, response);
  }

 private:
  std::string path_;
  LayerProfileOptions layers_;
  ImportFlags flags_;
};

class ZooCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("zoo", "Make a profile of a published architecture, and store it");
    app->add_option("MODEL", zoo_.model, "alexnet, vgg11, vgg16, googlenet, inception_v3, resnet50 or resnet101")->required()->type_name("");
    app->add_option("--batch-size", zoo_.batch_size, "Examples per step (default 32)")->type_name("N");
    app->add_option("--device-flops", zoo_.device_flops_per_second, "Floating-point operations per second the device reaches (default 5e12)")
        ->type_name("RATE");
    flags_.Declare(*app);
    return app;
  }

  ExitCode Run(const Session& session) const override {
    ModelZooOptions zoo = zoo_;
    flags_.Fill(zoo);
    const auto response = [&] {
      const Progress progress(session.console, "building");
      return session.client.ImportZooModel(zoo, flags_.Options(session));
    }();
    return flags_.Finish(session, response);
  }

 private:
  ModelZooOptions zoo_;
  ImportFlags flags_;
};

}  // namespace

std::unique_ptr<Command> MakeImportCommand() { return std::make_unique<ImportCommand>(); }
std::unique_ptr<Command> MakeZooCommand() { return std::make_unique<ZooCommand>(); }

}  // namespace stepcast::client
