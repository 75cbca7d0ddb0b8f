#include "client/cli/import_commands.h"

#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/parsed_option.h"
#include "client/cli/platform_flags.h"
#include "client/cli/profile_argument.h"
#include "client/cli/profile_table.h"
#include "client/cli/progress.h"
#include "client/cli/quantity.h"
#include "client/cli/recording_format.h"
#include "client/cli/variable_file.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

// What both imports share: where the profile goes, and how its steps vary.
class ImportFlags {
 public:
  void Declare(CLI::App& app) {
    app.add_option("--id", options_.store.profile_id,
                   "Name of the profile: a-z, 0-9 and - (default: of a model of the zoo its own "
                   "where that is free, else from its content)")
        ->type_name("ID");
    app.add_option("--display-name", options_.display_name,
                   "Text for people (default: the model's name)")
        ->type_name("TEXT");
    app.add_option_function<std::vector<std::string>>(
           "--label", [this](const auto& texts) { AddLabels(texts); },
           "For filters; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    app.add_option("--save", save_,
                   "Write the profile to this file, in proto JSON, and store nothing")
        ->type_name("FILE");
    app.add_option("--variation", variation_,
                   "Standard deviation of each computation's time by itself, as a share of it;\n0: "
                   "one step, exactly as measured (default 0.05, and "
                   "0.05 common to a step)")
        ->type_name("SHARE");
    app.add_option("--common-variation", common_variation_,
                   "The same of all of a step's computations together (default 0 with --variation)")
        ->type_name("SHARE");
    app.add_option("--steps", steps_, "Steps to make when there is variation (default 20)")
        ->type_name("N");
    AddParsedOption(
        app, "--seed", "N", "Of the variation (default 1)",
        [](const std::string& text) { return ParseCount(text); },
        [this](uint64_t seed) { seed_ = seed; });
    platform_.Declare(app);
  }

  template <typename Format>
  void Fill(Format& format) const {
    format.platform = platform_.platform();
    FillVariation(format);
  }

  template <typename Format>
  void FillVariation(Format& format) const {
    format.step_time_variation = variation_;
    format.common_time_variation = common_variation_;
    format.steps = steps_;
    format.seed = seed_;
  }

  // What is only saved is asked of no store.
  bool stores() const { return save_.empty(); }
  Platform platform() const { return platform_.platform(); }
  // Whether anything was said of how the steps made vary.
  bool varies() const { return variation_ || common_variation_ || steps_ || seed_; }

  ImportOptions Options(const Session& session) const {
    ImportOptions options = options_;
    options.store.validate_only = session.local || !save_.empty();
    return options;
  }

  ExitCode Finish(const Session& session,
                  const absl::StatusOr<ImportProfileResponse>& response) const {
    if (!response.ok()) return session.Refused(response.status());
    if (!save_.empty() && !Save(ToJson(response->profile)))
      return session.Misused(absl::StrCat("cannot write ", save_));
    // Of a long recording the JSON takes many times the memory of the import.
    return session.Answer(session.output == OutputFormat::kJson ? ToJson(*response) : "", [&] {
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
      if (equals == std::string::npos)
        throw CLI::ValidationError("--label", absl::StrCat("\"", text, "\" is not KEY=VALUE"));
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
  std::optional<double> variation_;
  std::optional<double> common_variation_;
  std::optional<int32_t> steps_;
  std::optional<uint64_t> seed_;
  PlatformFlags platform_;
};

class ImportCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "import",
        "Make a profile of measured layers, or of what TensorFlow recorded, and store it");
    app->add_option("FILE", path_,
                    "layers: text of lines `nodeK -- Op -- key=value, ...` and edges between the "
                    "nodes;\nrun-metadata: serialised RunMetadata of one or more "
                    "steps of a worker with parameter servers;\ntimeline: JSON of TensorFlow 1's "
                    "timeline of a step.\nMay be compressed by gzip")
        ->required()
        ->type_name("");
    app->add_option("--format", format_,
                    "What FILE is: layers, run-metadata or timeline (default: by its first bytes)")
        ->type_name("FORMAT")
        ->check(CLI::IsMember({"layers", "run-metadata", "timeline"}));
    app->add_option("--graph", graph_,
                    "A serialised GraphDef: for RunMetadata without partition graphs, or for a "
                    "timeline's sizes")
        ->type_name("FILE");
    app->add_option("--variables", variables_,
                    "Lines `NAME BYTES`: the variables of a timeline that a server keeps")
        ->type_name("FILE");
    app->add_option("--batch-size", batch_size_, "Examples per step of the measurement")
        ->type_name("N")
        ->required();
    app->add_option("--model", model_, "Becomes the profile's model")->type_name("TEXT");
    flags_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return !flags_.stores(); }

  ExitCode Run(const Session& session) const override {
    for (const std::string& path : {path_, graph_, variables_}) {
      if (!path.empty() && !IsFile(path))
        return session.Misused(absl::StrCat("there is no file \"", path, "\""));
    }
    const absl::StatusOr<RecordingFormat> format = Format();
    if (!format.ok()) return session.Refused(format.status());
    if (const std::string_view unused = Unused(*format); !unused.empty()) {
      return session.Misused(
          absl::StrCat(std::string(unused), " does not apply to ", NameOf(*format)));
    }
    const absl::StatusOr<std::map<std::string, int64_t>> sizes = Sizes();
    if (!sizes.ok())
      return session.Misused(absl::StrCat(variables_, ": ", sizes.status().message()));
    const auto response = [&] {
      const Progress progress(session.console, "importing");
      return Import(session, *format, *sizes);
    }();
    return flags_.Finish(session, response);
  }

 private:
  static const char* NameOf(RecordingFormat format) {
    if (format == RecordingFormat::kLayers) return "measured layers";
    return format == RecordingFormat::kTimeline ? "a timeline" : "RunMetadata";
  }

  absl::StatusOr<RecordingFormat> Format() const {
    if (format_.empty()) return DetectRecordingFormatOf(path_);
    if (format_ == "layers") return RecordingFormat::kLayers;
    return format_ == "timeline" ? RecordingFormat::kTimeline : RecordingFormat::kRunMetadata;
  }

  // A flag that is given and has no meaning for the format; empty: none.
  std::string_view Unused(RecordingFormat format) const {
    if (format == RecordingFormat::kLayers && !graph_.empty()) return "--graph";
    if (format != RecordingFormat::kTimeline && !variables_.empty()) return "--variables";
    return format == RecordingFormat::kRunMetadata && flags_.varies()
               ? "--variation, --common-variation, --steps or --seed"
               : "";
  }

  absl::StatusOr<std::map<std::string, int64_t>> Sizes() const {
    if (variables_.empty()) return std::map<std::string, int64_t>{};
    const absl::StatusOr<std::string> text = ReadFile(variables_);
    if (!text.ok()) return text.status();
    return ParseVariableSizes(*text);
  }

  absl::StatusOr<ImportProfileResponse> Import(const Session& session, RecordingFormat format,
                                               const std::map<std::string, int64_t>& sizes) const {
    const ImportOptions import = flags_.Options(session);
    if (format == RecordingFormat::kRunMetadata) {
      const RunMetadataOptions options{
          .model = model_, .batch_size = batch_size_, .platform = flags_.platform()};
      return session.client.ImportRunMetadata({.recording = path_, .graph = graph_}, options,
                                              import);
    }
    if (format == RecordingFormat::kTimeline) {
      TimelineOptions options{.model = model_,
                              .batch_size = batch_size_,
                              .platform = flags_.platform(),
                              .variable_bytes = sizes};
      flags_.FillVariation(options);
      return session.client.ImportTimeline({.recording = path_, .graph = graph_}, options, import);
    }
    const absl::StatusOr<std::string> text = ReadFile(path_);
    if (!text.ok()) return text.status();
    LayerProfileOptions layers{.model = model_, .batch_size = batch_size_};
    flags_.Fill(layers);
    return session.client.ImportLayerProfile(*text, layers, import);
  }

  std::string path_;
  std::string format_;
  std::string graph_;
  std::string variables_;
  std::string model_;
  int32_t batch_size_ = 0;
  ImportFlags flags_;
};

class ZooCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("zoo", "Make a profile of a published architecture, and store it");
    app->add_option("MODEL", zoo_.model, "The architecture")
        ->required()
        ->type_name("alexnet|vgg11|vgg16|googlenet|inception_v3|resnet50|resnet101");
    app->add_option("--batch-size", zoo_.batch_size, "Examples per step (default 32)")
        ->type_name("N");
    app->add_option("--device-flops", zoo_.device_flops_per_second,
                    "Floating-point operations per second the device reaches (default 5e12)")
        ->type_name("RATE");
    flags_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return !flags_.stores(); }

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
