#include "client/cli/flags/job_flags.h"

#include <google/protobuf/util/time_util.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/flags/presets.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/input_files.h"
#include "client/cli/texts/characters.h"

namespace stepcast::client {

namespace {

constexpr char kPlanGroup[] = "Time and money";

const Choices<v1::Pipeline::Schedule> kSchedules{{"gpipe", v1::Pipeline::GPIPE},
                                                 {"1f1b", v1::Pipeline::ONE_F_ONE_B},
                                                 {"interleaved", v1::Pipeline::INTERLEAVED},
                                                 {"looped-bfs", v1::Pipeline::LOOPED_BFS},
                                                 {"zero-bubble-1", v1::Pipeline::ZERO_BUBBLE_1},
                                                 {"zero-bubble-v", v1::Pipeline::ZERO_BUBBLE_V}};
const Choices<v1::Pipeline::Variant> kVariants{{"megatron", v1::Pipeline::MEGATRON},
                                               {"pytorch", v1::Pipeline::PYTORCH}};
const Choices<v1::Pipeline::Receives> kReceives{{"eager", v1::Pipeline::EAGER},
                                                {"late", v1::Pipeline::LATE},
                                                {"fused", v1::Pipeline::FUSED},
                                                {"paired", v1::Pipeline::PAIRED}};
const Choices<v1::Pipeline::Transport> kTransports{{"ideal", v1::Pipeline::IDEAL},
                                                   {"gloo", v1::Pipeline::GLOO}};
const Choices<v1::Pipeline::Links> kLinks{{"pair", v1::Pipeline::PAIR},
                                          {"device", v1::Pipeline::DEVICE},
                                          {"serial", v1::Pipeline::SERIAL}};
const Choices<v1::Pipeline::Reduction> kReductions{{"at-end", v1::Pipeline::AT_END},
                                                   {"by-chunk", v1::Pipeline::BY_CHUNK},
                                                   {"buckets", v1::Pipeline::BUCKETS},
                                                   {"megatron", v1::Pipeline::MEGATRON_BUCKETS}};

// Signs of a name, which a backslash tells from those between names and keys.
constexpr char kComma[] = "\x01";
constexpr char kEquals[] = "\x02";

absl::StatusOr<int32_t> ParseSmallCount(std::string_view text) {
  const absl::StatusOr<uint64_t> count = ParseCount(text);
  if (!count.ok()) return count.status();
  if (*count == 0) return absl::InvalidArgumentError("0 is not at least 1");
  return static_cast<int32_t>(std::min<uint64_t>(*count, INT32_MAX));
}

// Sets the value where it is one; else says what is wrong.
template <typename Value, typename Set>
absl::Status Keep(const absl::StatusOr<Value>& value, Set set) {
  if (value.ok()) set(*value);
  return value.status();
}

absl::Status SetPipelineField(std::string_view key, const std::string& text,
                              v1::Pipeline& pipeline) {
  if (key == "stages")
    return Keep(ParseSmallCount(text), [&](int32_t value) { pipeline.set_stages(value); });
  if (key == "micro-batches")
    return Keep(ParseSmallCount(text), [&](int32_t value) { pipeline.set_micro_batches(value); });
  if (key == "chunks")
    return Keep(ParseSmallCount(text), [&](int32_t value) { pipeline.set_chunks(value); });
  if (key == "group")
    return Keep(ParseSmallCount(text), [&](int32_t value) { pipeline.set_group(value); });
  if (key == "schedule")
    return Keep(ParseChoice(text, kSchedules), [&](auto value) { pipeline.set_schedule(value); });
  if (key == "variant")
    return Keep(ParseChoice(text, kVariants), [&](auto value) { pipeline.set_variant(value); });
  if (key == "receives")
    return Keep(ParseChoice(text, kReceives), [&](auto value) { pipeline.set_receives(value); });
  if (key == "transport")
    return Keep(ParseChoice(text, kTransports), [&](auto value) { pipeline.set_transport(value); });
  if (key == "links")
    return Keep(ParseChoice(text, kLinks), [&](auto value) { pipeline.set_links(value); });
  if (key == "reduction")
    return Keep(ParseChoice(text, kReductions), [&](auto value) { pipeline.set_reduction(value); });
  if (key == "element-bytes")
    return Keep(ParseSmallCount(text),
                [&](int32_t value) { pipeline.set_gradient_element_bytes(value); });
  if (key == "nodes")
    return Keep(ParseSmallCount(text),
                [&](int32_t value) { pipeline.set_nodes_per_replica(value); });
  if (key == "bandwidth")
    return Keep(ParseRate(text),
                [&](double value) { pipeline.set_bandwidth_bytes_per_second(value); });
  if (key == "latency")
    return Keep(ParseSeconds(text), [&](double value) { pipeline.set_latency_seconds(value); });
  if (key == "cuts") {
    for (const absl::string_view cut : absl::StrSplit(text, ','))
      pipeline.add_cuts(absl::StrReplaceAll(cut, {{kComma, ","}, {kEquals, "="}}));
    return absl::OkStatus();
  }
  if (key == "step-barrier") {
    if (text != "true" && text != "false")
      return absl::InvalidArgumentError(absl::StrCat(InQuotes(text), " is neither true nor false"));
    pipeline.set_step_barrier(text == "true");
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "no such key: stages, micro-batches, schedule, chunks, group, variant, cuts, receives, "
      "transport, links, bandwidth, latency, reduction, element-bytes, nodes, step-barrier");
}

}  // namespace

template <typename Message>
absl::StatusOr<Message> SecondRecording(const std::string& argument) {
  Message source;
  if (!IsFile(argument)) {
    absl::StatusOr<std::string> name = StoredName(argument);
    if (!name.ok())
      return absl::InvalidArgumentError(
          absl::StrCat(InQuotes(argument), " is neither a file nor the name of a stored profile"));
    source.set_second_profile(*std::move(name));
    return source;
  }
  absl::StatusOr<v1::Profile> profile = ReadProfileInput(argument);
  if (!profile.ok()) return profile.status();
  *source.mutable_second_inline_profile() = *std::move(profile);
  return source;
}

template absl::StatusOr<v1::JobChange> SecondRecording(const std::string& argument);
template absl::StatusOr<v1::StrategyMemory> SecondRecording(const std::string& argument);

void DeclareChangeFlags(CLI::App& app, v1::Scenario& scenario, std::string& told) {
  const auto change = [&scenario] { return scenario.mutable_change(); };
  CLI::Option* const batch = AddValueOption<int32_t>(
      app, "--batch-size", "N",
      "Examples of a worker and step, in place of the recorded number; computation grows with it",
      [=](int32_t examples) { change()->set_batch_size(examples); });
  CLI::Option* const global = AddValueOption<int64_t>(
      app, "--global-batch", "N",
      "Examples of a step of all workers together, which they divide: strong scaling (of predict "
      "and recommend)",
      [=](int64_t examples) { change()->set_global_batch_size(examples); });
  global->excludes(batch);
  CLI::Option* const fixed = AddValueOption<double>(
      app, "--batch-fixed", "SHARE",
      "Share of the recorded computation that does not grow with the batch (default 0)",
      [=](double share) { change()->set_fixed_fraction(share); });
  CLI::Option* const second = AddParsedOption(
      app, "--batch-recording", "PROFILE",
      "A recording of the same job with another batch, a file or a stored name: tells what grows "
      "with the batch",
      SecondRecording<v1::JobChange>,
      [=](const v1::JobChange& source) { change()->MergeFrom(source); });
  second->excludes(fixed);
  CLI::Option* const accumulate = AddValueOption<int32_t>(
      app, "--accumulate", "K",
      "Micro-batches whose gradients add up before they are sent, as with DDP's no_sync",
      [=](int32_t count) { change()->set_accumulate(count); });
  CLI::Option* const speed = AddParsedOption(
      app, "--compute-speed", "FACTOR",
      "Speed of all devices over that of the recorded one; or both by name, h100/v100, for the "
      "ratio of their peak rates of 16 bits, with :fp32 of 32",
      ParseComputeSpeed, [=, &told](ComputeSpeed made) {
        change()->set_compute_speed_factor(made.factor);
        told = std::move(made.told);
      });
  CLI::Option* const bytes = AddValueOption<double>(
      app, "--gradient-bytes", "FACTOR",
      "Bytes of gradients over the recorded ones: 0.5 for 16 bits in place of 32",
      [=](double factor) { change()->set_gradient_bytes_factor(factor); });
  for (CLI::Option* option : {batch, global, fixed, second, accumulate, speed, bytes})
    option->group("Job (default: as recorded)");
}

CLI::Option* DeclarePipelineFlag(CLI::App& app, v1::Scenario& scenario) {
  return AddParsedOption(
      app, "--pipeline", "KEY=VALUE,...",
      "Workers are replicas of a pipeline: stages=4,micro-batches=16 and schedule=" +
          ChoiceWords(kSchedules, "|") +
          ", chunks=N, group=N, variant=" + ChoiceWords(kVariants, "|") +
          ", cuts=NAME,NAME..., receives=" + ChoiceWords(kReceives, "|") +
          ", transport=" + ChoiceWords(kTransports, "|") + ", links=" + ChoiceWords(kLinks, "|") +
          ", reduction=" + ChoiceWords(kReductions, "|") +
          ", element-bytes=N, nodes=N, bandwidth=RATE, latency=TIME, step-barrier",
      ParsePipeline,
      [&scenario](v1::Pipeline pipeline) { *scenario.mutable_pipeline() = std::move(pipeline); });
}

absl::StatusOr<v1::Pipeline> ParsePipeline(const std::string& text) {
  // A part without a key is one more of the cuts before it.
  std::vector<std::string> parts;
  const std::string marked = absl::StrReplaceAll(text, {{"\\,", kComma}, {"\\=", kEquals}});
  for (const absl::string_view part : absl::StrSplit(marked, ',')) {
    if (!parts.empty() && absl::StartsWith(parts.back(), "cuts=") && part != "step-barrier" &&
        !absl::StrContains(part, '=')) {
      absl::StrAppend(&parts.back(), ",", part);
    } else {
      parts.emplace_back(part);
    }
  }
  v1::Pipeline pipeline;
  std::set<std::string> seen;
  for (const std::string& part : parts) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const bool has_value = absl::StrContains(part, '=');
    if (!has_value && pair.first != "step-barrier")
      return absl::InvalidArgumentError(absl::StrCat(
          InQuotes(part), " is not KEY=VALUE, for instance stages=4,micro-batches=16"));
    if (!seen.insert(pair.first).second)
      return absl::InvalidArgumentError(absl::StrCat(pair.first, " is given twice"));
    if (absl::Status status =
            SetPipelineField(pair.first, has_value ? pair.second : "true", pipeline);
        !status.ok())
      return absl::InvalidArgumentError(
          absl::StrCat(pair.first, ": ", std::string(status.message())));
  }
  return pipeline;
}

void PlanFlags::Declare(CLI::App& app) {
  const auto add = [&](auto value, const char* name, const char* type, const char* help, auto set) {
    return AddValueOption<decltype(value)>(app, name, type, help,
                                           [=, this](const auto& given) {
                                             any_ = true;
                                             set(given);
                                           })
        ->group(kPlanGroup);
  };
  CLI::Option* const examples =
      add(int64_t{}, "--examples", "N", "Examples to train on: gives time and, with prices, cost",
          [this](int64_t count) {
            plan_.set_examples(count);
            has_examples_ = true;
          });
  CLI::Option* const epochs =
      add(double{}, "--epochs", "N", "The same as epochs of --dataset", [this](double count) {
        epochs_ = count;
        has_examples_ = true;
      });
  CLI::Option* const dataset = add(int64_t{}, "--dataset", "N", "Examples of an epoch",
                                   [this](int64_t count) { dataset_ = count; });
  const CLI::Validator above_zero(
      [](const std::string& text) {
        double number = 0;
        return absl::SimpleAtod(text, &number) && number > 0
                   ? ""
                   : absl::StrCat("\"", text, "\" is not a number above 0");
      },
      "");
  epochs->excludes(examples)->needs(dataset)->check(above_zero);
  dataset->needs(epochs)->check(above_zero);
  add(double{}, "--worker-hour", "AMOUNT", "What a worker costs an hour",
      [this](double amount) { plan_.set_worker_hour(amount); });
  add(double{}, "--server-hour", "AMOUNT", "What a parameter server costs an hour",
      [this](double amount) { plan_.set_parameter_server_hour(amount); });
  add(double{}, "--node-hour", "AMOUNT", "What a node of --workers-per-node workers costs an hour",
      [this](double amount) { plan_.set_node_hour(amount); });
  add(double{}, "--device-hour", "AMOUNT",
      "What a device costs an hour, of which a pipeline's replica has one a stage",
      [this](double amount) { plan_.set_device_hour(amount); });
  add(std::string{}, "--currency", "CODE", "What the prices are in, for instance USD",
      [this](const std::string& code) { plan_.set_currency_code(code); });
  DeclareFailures(app);
}

void PlanFlags::DeclareFailures(CLI::App& app) {
  const auto add = [&](const char* name, const char* help, auto mutable_field) {
    return AddParsedOption(
               app, name, "TIME", help, [](const std::string& text) { return ParseDuration(text); },
               [=, this](std::chrono::nanoseconds time) {
                 any_ = true;
                 *(plan_.mutable_failures()->*mutable_field)() =
                     google::protobuf::util::TimeUtil::NanosecondsToDuration(time.count());
               })
        ->group(kPlanGroup);
  };
  using v1::Failures;
  CLI::Option* const between =
      add("--worker-mtbf", "Mean time between failures of one worker: 50000h",
          &Failures::mutable_worker_mean_time_between);
  CLI::Option* const checkpoint = add("--checkpoint-time", "What writing a checkpoint takes: 40s",
                                      &Failures::mutable_checkpoint_time);
  between->needs(checkpoint);
  checkpoint->needs(between);
  add("--restart-time", "From a failure to the next step: 5m (default 0s)",
      &Failures::mutable_restart_time)
      ->needs(between);
  add("--checkpoint-every", "Work between checkpoints (default: the best, by Daly's formula)",
      &Failures::mutable_checkpoint_interval)
      ->needs(between);
}

v1::TrainingPlan PlanFlags::plan() const {
  v1::TrainingPlan plan = plan_;
  if (epochs_.has_value() && dataset_.has_value()) {
    const double examples = std::ceil(*epochs_ * static_cast<double>(*dataset_));
    constexpr double kMost = 9e18;
    plan.set_examples(static_cast<int64_t>(std::min(examples, kMost)));
  }
  return plan;
}

}  // namespace stepcast::client
