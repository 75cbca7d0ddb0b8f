// `profile import` and `profile zoo`: a profile made of a recording, or of a published
// architecture.
#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/profile_folder.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/input_files.h"
#include "client/cli/local_connection.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/progress.h"

#include "stepcast/error_details.h"
#include "stepcast/json.h"

namespace stepcast::client {

namespace {

// The flags that both imports share: where the profile goes, its platform, and how its steps vary.
class ImportFlags {
 public:
  void Declare(CLI::App& app) {
    app.add_option("--id", id_,
                   "Name of the profile: a-z, 0-9 and - (default: of a model of the zoo its own "
                   "where that is free, else from its content)")
        ->type_name("ID");
    app.add_option("--display-name", display_name_, "Text for people (default: the model's name)")
        ->type_name("TEXT");
    app.add_option_function<std::vector<std::string>>(
           "--label", [this](const auto& texts) { AddLabels(texts); },
           "For filters; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    app.add_option("--save", save_,
                   "Write the profile to this file (- is standard output), in proto JSON, and "
                   "store nothing")
        ->type_name("FILE");
    replace_.Declare(app);
    app.add_option(
           "--variation", variation_,
           "Standard deviation of each computation's time by itself, as a share of it: makes "
           "steps that count as recorded ones (default 0: one step, exactly as measured)")
        ->type_name("SHARE");
    app.add_option("--common-variation", common_variation_,
                   "The same of all of a step's computations together (default 0)")
        ->type_name("SHARE");
    app.add_option("--steps", steps_, "Steps to make when there is variation (default 20)")
        ->type_name("N");
    AddParsedOption(
        app, "--seed", "N", "Of the variation (default 1)",
        [](const std::string& text) { return ParseCount(text); },
        [this](uint64_t seed) { seed_ = seed; });
    DeclarePlatform(app);
  }

  // The header but for the format.
  v1::ImportProfileRequest::Header Header(const Session& session) const {
    v1::ImportProfileRequest::Header header;
    header.set_profile_id(id_);
    header.set_validate_only(session.local || !save_.empty());
    replace_.Fill(header);
    header.set_display_name(display_name_);
    header.mutable_labels()->insert(labels_.begin(), labels_.end());
    return header;
  }

  const v1::Platform& platform() const { return platform_; }

  // Variation of a format whose steps are made.
  template <typename Format>
  void FillVariation(Format& format) const {
    if (variation_) format.set_step_time_variation(*variation_);
    if (common_variation_) format.set_common_time_variation(*common_variation_);
    if (steps_) format.set_steps(*steps_);
    if (seed_) format.set_seed(*seed_);
  }

  // A profile that is only saved is asked of no store.
  bool stores() const { return save_.empty(); }
  bool names_profile() const { return !id_.empty() || replace_.any(); }
  // Not OK: flags that do not go together.
  absl::Status Check() const {
    if (replace_.any() && !stores())
      return absl::InvalidArgumentError("--save stores nothing that --replace could replace");
    return replace_.Check(id_);
  }
  // The same, of a format whose steps are made.
  absl::Status CheckMade() const {
    if ((steps_ || seed_) && !variation_ && !common_variation_)
      return absl::InvalidArgumentError(
          absl::StrCat(steps_ ? "--steps" : "--seed",
                       " is of steps that vary: --variation or --common-variation says how much"));
    return Check();
  }
  // True where anything was said of how the steps made vary.
  bool varies() const { return variation_ || common_variation_ || steps_ || seed_; }

  ExitCode Finish(const Session& session,
                  const absl::StatusOr<v1::ImportProfileResponse>& response) const {
    if (!response.ok()) {
      const ExitCode code = session.Refused(response.status());
      if (!session.local && absl::IsUnavailable(response.status())) {
        session.console.err
            << "hint: --save FILE keeps the profile on this machine, in a file, and "
               "needs no server\n";
      }
      return code;
    }
    if (session.local && stores())
      session.console.err << "hint: --local stores nothing; --save FILE keeps the profile\n";
    // JSON of a long recording takes many times the memory of the import.
    const std::string json = session.output == OutputFormat::kJson ? ToJson(*response) : "";
    const std::string saved = save_.empty() ? "" : ToJson(response->profile());
    return session.AnswerWithFile(save_, saved, json, [&] {
      std::string text = ProfileText(response->profile());
      for (const std::string& note : response->notes())
        absl::StrAppend(&text, "note: ", note, "\n");
      if (response->has_recording()) text += RecordingText(response->recording());
      if (!save_.empty() && save_ != kStandardOutput)
        absl::StrAppend(&text, "saved: ", save_, "\n");
      return text;
    });
  }

 private:
  void DeclarePlatform(CLI::App& app) {
    constexpr char kPlatformGroup[] = "Platform";
    AddParsedOption(
        app, "--bandwidth", "RATE", "Payload rate of a link in each direction: 1Gbit/s, 125MB/s",
        [](const std::string& text) { return ParseRate(text); },
        [this](double rate) { platform_.set_bandwidth_bytes_per_second(rate); })
        ->required()
        ->group(kPlatformGroup);
    AddParsedOption(
        app, "--window", "BYTES",
        "What a stream sends before others get their turn: 64KiB, 4MiB (default: streams are sent "
        "whole)",
        [](const std::string& text) { return ParseBytes(text); },
        [this](int64_t bytes) { platform_.set_window_bytes(bytes); })
        ->group(kPlatformGroup);
    AddValueOption<double>(app, "--parsing-seconds-per-byte", "S",
                           "What a receiver computes per byte of a tensor",
                           [this](double seconds) {
                             platform_.mutable_parsing_overhead()->set_seconds_per_byte(seconds);
                           })
        ->group(kPlatformGroup);
    AddValueOption<double>(
        app, "--parsing-seconds", "S", "What a receiver computes per tensor",
        [this](double seconds) { platform_.mutable_parsing_overhead()->set_seconds(seconds); })
        ->group(kPlatformGroup);
  }

  void AddLabels(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos)
        throw CLI::ValidationError("--label", absl::StrCat("\"", text, "\" is not KEY=VALUE"));
      labels_[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }

  std::string id_;
  std::string display_name_;
  std::map<std::string, std::string> labels_;
  std::string save_;
  ReplaceFlags replace_;
  std::optional<double> variation_;
  std::optional<double> common_variation_;
  std::optional<int32_t> steps_;
  std::optional<uint64_t> seed_;
  v1::Platform platform_;
};

class ImportCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("import",
                                          "Make a profile of measured layers, or of what PyTorch, "
                                          "Horovod or TensorFlow recorded, and "
                                          "store it");
    app->add_option(
           "FILE", paths_,
           "layers: text of lines `nodeK -- Op -- key=value, ...` and edges between the "
           "nodes, or a table with the columns name, forward_ms, backward_ms, activation_bytes and "
           "parameter_bytes, or a profile of Sailor's as JSON;\nrun-metadata: serialised "
           "RunMetadata of one or more "
           "steps of a worker with parameter servers;\ntimeline: JSON of TensorFlow 1's "
           "timeline of a step;\npytorch: JSON of PyTorch's profiler (export_chrome_trace), of "
           "three steps or more with record_shapes=True;\nchakra: a Chakra execution "
           "trace of one rank;\nhorovod: what Horovod wrote to HOROVOD_TIMELINE.\nMay be "
           "compressed by gzip; -: standard input. Several files, traces of PyTorch or of Chakra "
           "or RunMetadata: one "
           "of "
           "each worker of one job, or of PyTorch one of each stage of a pipeline's replica")
        ->required()
        ->type_name("");
    app->add_option(
           "--format", format_,
           "What FILE is: layers, run-metadata, timeline, pytorch, chakra or horovod (default: by "
           "its first 256 KiB, which say RunMetadata of what is neither text nor known)")
        ->type_name("FORMAT")
        ->check(
            CLI::IsMember({"layers", "run-metadata", "timeline", "pytorch", "chakra", "horovod"}));
    app->add_option("--graph", graph_,
                    "A serialised GraphDef: for RunMetadata without partition graphs, or for a "
                    "timeline's sizes; of a profile of Sailor's its training configuration")
        ->type_name("FILE");
    app->add_option("--variables", variables_,
                    "Lines `NAME BYTES`: the variables of a timeline that a server keeps")
        ->type_name("FILE");
    DeclareMeaning(*app);
    flags_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return !flags_.stores(); }

  ExitCode Run(const Session& session) const override {
    const auto made = Make(session);
    if (absl::IsInvalidArgument(made.status()) && GetErrorDetails(made.status()).reason.empty())
      return session.Misused({made.status().message().data(), made.status().message().size()});
    const ExitCode code = flags_.Finish(session, made);
    if (taken_for_ != nullptr && GetErrorDetails(made.status()).reason == "IMPORT_INVALID") {
      session.console.err << "hint: by its content it was taken for " << taken_for_
                          << "; --format says what else it is\n";
    }
    if (GetErrorDetails(made.status()).reason == "IMPORT_TOO_LARGE") {
      session.console.err << "hint: that is a limit of the server (stepcastd --max-import-bytes); "
                             "--save FILE imports here, and profile upload stores that\n";
    }
    return code;
  }

  // Failure: INVALID_ARGUMENT without a reason for flags that do not go together or name no file.
  absl::StatusOr<v1::ImportProfileResponse> Make(const Session& session) const {
    if (absl::Status fits = flags_.Check(); !fits.ok()) return fits;
    std::vector<std::string> named = paths_;
    named.insert(named.end(), {graph_, variables_});
    for (const std::string& path : named) {
      if (!path.empty() && !IsFile(path)) return absl::InvalidArgumentError(WhyNoFile(path));
    }
    Inputs inputs;
    if (absl::Status status = Open(inputs); !status.ok()) return status;
    const absl::StatusOr<RecordingFormat> format = Format(inputs);
    if (!format.ok()) return format.status();
    taken_for_ = format_.empty() ? RowOf(*format).text : nullptr;
    if (const std::string_view unused = Unused(*format); !unused.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(unused), " does not apply to ", RowOf(*format).text));
    }
    if (absl::Status fits = flags_.CheckMade(); !fits.ok()) return fits;
    if (paths_.size() > 1 && *format != RecordingFormat::kPyTorch &&
        *format != RecordingFormat::kChakra && *format != RecordingFormat::kRunMetadata) {
      return absl::InvalidArgumentError(absl::StrCat(
          paths_.size(), " files, where ", RowOf(*format).text,
          " is one: several are traces of PyTorch or of Chakra, or RunMetadata, one a worker"));
    }
    const absl::StatusOr<std::map<std::string, int64_t>> sizes = Sizes();
    if (!sizes.ok()) return sizes.status();
    Progress progress(session.console, "importing");
    const auto made = Import(session, *format, *sizes, inputs, progress);
    return made.ok() ? made : NamingFiles(made.status(), NamesOfFields());
  }

  // Takes the files that flags name from `folder`, where they must be. Failure: INVALID_ARGUMENT
  // for any that is elsewhere, and for a flag that says where the profile goes.
  absl::Status StayIn(const std::string& folder) {
    if (!flags_.stores() || flags_.names_profile())
      return absl::InvalidArgumentError("--save, --id and --replace mean nothing here");
    for (std::string* const file : {&graph_, &variables_}) {
      if (file->empty()) continue;
      if (file->find('/') != std::string::npos)
        return absl::InvalidArgumentError(absl::StrCat("\"", *file, "\" is not beside it"));
      *file = absl::StrCat(folder, "/", *file);
    }
    return absl::OkStatus();
  }

 private:
  // The flags that say what the times of the files mean.
  void DeclareMeaning(CLI::App& app) {
    app.add_option("--batch-size", batch_size_, "Examples per step of the measurement")
        ->type_name("N")
        ->required();
    app.add_option("--model", model_, "Becomes the profile's model")->type_name("TEXT");
    AddValueOption<double>(
        app, "--step-seconds", "S",
        "Mean length of a step without PyTorch's profiler, to which times are scaled",
        [this](double seconds) { step_seconds_ = seconds; });
    app.add_option("--data-parallel-group", data_parallel_group_,
                   "The process group in which workers reduce gradients, by its name or "
                   "description in a trace of PyTorch; all others are inside a worker (default: "
                   "found by sizes and descriptions)")
        ->type_name("NAME");
    AddValueOption<int32_t>(app, "--tensor-parallel", "N",
                            "Of a profile of Sailor's, the tensor width whose times are taken "
                            "(default: the only one there is)",
                            [this](int32_t width) { tensor_parallel_ = width; });
    AddValueOption<double>(
        app, "--overlap-slowdown", "X",
        "Of several files: what computation took longer by while a collective ran beside it, 1 to "
        "100; times are stored without it, and predictions put it back. 1: times as recorded "
        "(default: what the files tell, if anything)",
        [this](double slowdown) { overlap_slowdown_ = slowdown; });
    AddValueOption<double>(
        app, "--collective-slowdown", "X",
        "Of several files: what a collective took longer by while some worker computed, 1 to 100; "
        "predictions take it out and put it back. 1: times as recorded (default: what the files "
        "tell, if anything)",
        [this](double slowdown) { collective_slowdown_ = slowdown; });
  }

  // Slower than any import of a trace, also of one that is compressed twenty times.
  static constexpr int64_t kBytesASecond = 1'000'000;
  // Size of a pipe, which nobody knows: what a server takes at most by default.
  static constexpr int64_t kPipeBytes = int64_t{2} << 30;

  // The open files: a pipe can be opened and read once.
  struct Inputs {
    std::vector<std::unique_ptr<FileStream>> recordings;
    std::unique_ptr<FileStream> graph;  // null: none

    // -1: not known.
    int64_t Bytes() const {
      int64_t bytes = 0;
      for (const auto& recording : recordings) {
        if (recording->size() < 0) return -1;
        bytes += recording->size();
      }
      return bytes;
    }
  };

  absl::Status Open(Inputs& inputs) const {
    for (const std::string& path : paths_) {
      absl::StatusOr<std::unique_ptr<FileStream>> opened = OpenInput(path);
      if (!opened.ok()) return opened.status();
      inputs.recordings.push_back(*std::move(opened));
    }
    if (graph_.empty()) return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<FileStream>> graph = OpenInput(graph_);
    if (!graph.ok()) return graph.status();
    inputs.graph = *std::move(graph);
    return absl::OkStatus();
  }

  // The fields of the request, by the files that fill them.
  std::map<std::string, std::string> NamesOfFields() const {
    std::map<std::string, std::string> names;
    const std::string first = InputAt(paths_.front()).Name();
    for (const char* const field : {"chunk", "recording"}) names.emplace(field, first);
    for (const char* const field : {"graph", "graph_chunk"})
      names.emplace(field, graph_.empty() ? "--graph" : InputAt(graph_).Name());
    for (size_t i = 0; i < paths_.size(); ++i)
      names.emplace(absl::StrCat("recordings[", i, "]"), InputAt(paths_[i]).Name());
    return names;
  }

  // A format by its name, and what goes with it.
  struct FormatRow {
    const char* name;
    const char* text;
    RecordingFormat format;
    bool takes_graph;
    bool makes_steps;
  };
  static constexpr FormatRow kFormats[] = {
      {"layers", "measured layers", RecordingFormat::kLayers, true, true},
      {"run-metadata", "RunMetadata", RecordingFormat::kRunMetadata, true, false},
      {"timeline", "a timeline", RecordingFormat::kTimeline, true, true},
      {"pytorch", "a trace of PyTorch", RecordingFormat::kPyTorch, false, false},
      {"chakra", "a Chakra trace", RecordingFormat::kChakra, false, true},
      {"horovod", "a timeline of Horovod", RecordingFormat::kHorovod, false, false}};

  static const FormatRow& RowOf(RecordingFormat format) {
    return *std::find_if(std::begin(kFormats), std::end(kFormats),
                         [format](const FormatRow& row) { return row.format == format; });
  }

  absl::StatusOr<RecordingFormat> Format(const Inputs& inputs) const {
    if (format_.empty()) return DetectedFormat(inputs);
    return std::find_if(std::begin(kFormats), std::end(kFormats),
                        [this](const FormatRow& row) { return row.name == format_; })
        ->format;
  }

  absl::StatusOr<RecordingFormat> DetectedFormat(const Inputs& inputs) const {
    std::optional<RecordingFormat> first;
    for (size_t i = 0; i < paths_.size(); ++i) {
      const absl::StatusOr<std::string> bytes = FirstBytes(*inputs.recordings[i]);
      if (!bytes.ok()) return bytes.status();
      const RecordingFormat format = DetectRecordingFormat(*bytes);
      if (format != first.value_or(format)) {
        return absl::InvalidArgumentError(
            absl::StrCat("\"", paths_[i], "\" looks like ", RowOf(format).text, ", and \"",
                         paths_.front(), "\" like ", RowOf(*first).text));
      }
      first = format;
    }
    return *first;
  }

  // A flag that is given and has no meaning for the format; empty: none.
  std::string_view Unused(RecordingFormat format) const {
    const FormatRow& row = RowOf(format);
    if (!row.takes_graph && !graph_.empty()) return "--graph";
    if (format != RecordingFormat::kTimeline && !variables_.empty()) return "--variables";
    if (format != RecordingFormat::kPyTorch && step_seconds_) return "--step-seconds";
    if (format != RecordingFormat::kLayers && tensor_parallel_ != 0) return "--tensor-parallel";
    if (format != RecordingFormat::kPyTorch && !data_parallel_group_.empty())
      return "--data-parallel-group";
    return !row.makes_steps && flags_.varies()
               ? "--variation, --common-variation, --steps or --seed"
               : "";
  }

  absl::StatusOr<std::map<std::string, int64_t>> Sizes() const {
    if (variables_.empty()) return std::map<std::string, int64_t>{};
    const absl::StatusOr<std::string> text = ReadTextInput(variables_, "lines `NAME BYTES`");
    if (!text.ok()) return text.status();
    auto sizes = ParseVariableSizes(*text);
    if (sizes.ok()) return sizes;
    return absl::InvalidArgumentError(
        absl::StrCat(InputAt(variables_).Name(), ": ", std::string(sizes.status().message())));
  }

  // A second longer for each megabyte, where no time is asked for and none is without a limit.
  static std::chrono::nanoseconds TimeoutFor(const Session& session, int64_t bytes) {
    if (session.local || session.patience != std::chrono::nanoseconds::max())
      return session.options.timeout;
    return session.options.timeout +
           std::chrono::seconds((bytes < 0 ? kPipeBytes : bytes) / kBytesASecond);
  }

  // The options that all formats have.
  template <typename Format>
  void FillFormat(Format& format) const {
    format.set_model(model_);
    format.set_batch_size(batch_size_);
    *format.mutable_platform() = flags_.platform();
  }

  absl::StatusOr<v1::ImportProfileResponse> Import(const Session& session, RecordingFormat format,
                                                   const std::map<std::string, int64_t>& sizes,
                                                   const Inputs& inputs, Progress& progress) const {
    v1::ImportProfileRequest::Header header = flags_.Header(session);
    if (format == RecordingFormat::kLayers) {
      FillFormat(*header.mutable_layer_profile());
      flags_.FillVariation(*header.mutable_layer_profile());
      header.mutable_layer_profile()->set_tensor_parallel(tensor_parallel_);
    } else if (format == RecordingFormat::kRunMetadata) {
      FillFormat(*header.mutable_run_metadata());
    } else if (format == RecordingFormat::kHorovod) {
      FillFormat(*header.mutable_horovod());
    } else if (format == RecordingFormat::kChakra) {
      FillFormat(*header.mutable_chakra());
      flags_.FillVariation(*header.mutable_chakra());
    } else if (format == RecordingFormat::kPyTorch) {
      FillFormat(*header.mutable_pytorch());
      if (step_seconds_) header.mutable_pytorch()->set_step_seconds(*step_seconds_);
      header.mutable_pytorch()->set_data_parallel_group(data_parallel_group_);
    } else {
      FillFormat(*header.mutable_timeline());
      flags_.FillVariation(*header.mutable_timeline());
      header.mutable_timeline()->mutable_variable_bytes()->insert(sizes.begin(), sizes.end());
    }
    if (overlap_slowdown_) header.set_overlap_slowdown(*overlap_slowdown_);
    if (collective_slowdown_) header.set_collective_slowdown(*collective_slowdown_);
    progress.ExpectBytes(inputs.Bytes());
    ImportStreams streams{.recording = *inputs.recordings.front(),
                          .graph = inputs.graph.get(),
                          .on_read = [&progress](int64_t read) { progress.ReachBytes(read); }};
    for (size_t i = 0; i < paths_.size() && paths_.size() > 1; ++i)
      streams.recordings.emplace_back(inputs.recordings[i].get(), paths_[i]);
    return session.client.ImportProfileStreams(header, streams,
                                               {.timeout = TimeoutFor(session, inputs.Bytes())});
  }

  std::vector<std::string> paths_;
  std::string format_;
  std::string graph_;
  std::string variables_;
  std::string model_;
  int32_t batch_size_ = 0;
  std::optional<double> step_seconds_;
  std::string data_parallel_group_;
  int32_t tensor_parallel_ = 0;
  std::optional<double> overlap_slowdown_;
  std::optional<double> collective_slowdown_;
  ImportFlags flags_;
  mutable const char* taken_for_ = nullptr;  // the last one, where no format was said
};

class ZooCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("zoo", "Make a profile of a published architecture, and store it");
    app->add_option(
           "MODEL", model_,
           "The architecture: resnet18, resnet18_cifar, resnet152, xception, bert_base and "
           "gpt2_small only with --all-reduce; alexnet, vgg11, googlenet, inception_v2, "
           "resnet50_v2 and resnet101_v2 only without")
        ->required()
        ->type_name(
            "alexnet|vgg11|vgg16|vgg19|googlenet|inception_v2|inception_v3|resnet18|resnet18_cifar|"
            "resnet50|resnet101|resnet152|resnet50_v2|resnet101_v2|xception|bert_base|gpt2_small");
    app->add_flag_callback(
        "--all-reduce", [this] { zoo_.set_communication(v1::ModelZooOptions::ALL_REDUCE); },
        "Of a job whose gradients meet in all-reduces, with the tensors that PyTorch's users train "
        "(default: at parameter servers, with TF-slim's)");
    AddValueOption<int32_t>(*app, "--batch-size", "N", "Examples per step (default 32)",
                            [this](int32_t size) { zoo_.set_batch_size(size); });
    AddValueOption<double>(*app, "--device-flops", "RATE",
                           "Floating-point operations per second the device reaches (default 5e12)",
                           [this](double rate) { zoo_.set_device_flops_per_second(rate); });
    flags_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return !flags_.stores(); }

  ExitCode Run(const Session& session) const override {
    if (const absl::Status fits = flags_.CheckMade(); !fits.ok())
      return session.Misused({fits.message().data(), fits.message().size()});
    v1::ImportProfileRequest::Header header = flags_.Header(session);
    v1::ModelZooOptions& zoo = *header.mutable_model_zoo();
    zoo = zoo_;
    zoo.set_model(model_);
    *zoo.mutable_platform() = flags_.platform();
    flags_.FillVariation(zoo);
    const auto response = [&] {
      const Progress progress(session.console, "building");
      return session.client.ImportProfile(header);
    }();
    return flags_.Finish(session, response);
  }

 private:
  std::string model_;
  v1::ModelZooOptions zoo_;
  ImportFlags flags_;
};

}  // namespace

absl::StatusOr<v1::Profile> ImportHere(const Session& session, const std::string& path,
                                       const std::vector<std::string>& flags) {
  ImportCommand command;
  CLI::App program;
  CLI::App* const app = command.Declare(program);
  // Read from the end. No help, which would be printed.
  app->set_help_flag();
  program.set_help_flag();
  std::vector<std::string> words(flags.rbegin(), flags.rend());
  words.push_back(path);
  words.push_back(app->get_name());
  try {
    program.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  if (const absl::Status status = command.StayIn(std::filesystem::path(path).parent_path());
      !status.ok()) {
    return status;
  }
  Session here = session;
  here.options.timeout = session.patience;
  here.client = MakeLocalClient(here.options);
  here.local = true;
  absl::StatusOr<v1::ImportProfileResponse> made = command.Make(here);
  if (!made.ok()) return made.status();
  return std::move(*made->mutable_profile());
}

std::unique_ptr<Command> MakeImportCommand() { return std::make_unique<ImportCommand>(); }
std::unique_ptr<Command> MakeZooCommand() { return std::make_unique<ZooCommand>(); }

}  // namespace stepcast::client
