// Small recordings of the kinds that people really make, in tests/data/cases, and what is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

#include "core/communication/all_reduce.h"
#include "core/importing/benchmarks/collective_benchmark.h"
#include "core/importing/file_kind.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "core/model/scenario.h"
#include "tests/core/importing/lone_worker.h"
#include "tests/core/importing/pytorch_writer.h"
#include "tests/core/importing/random_training.h"
#include "tests/core/importing/unpacked_file.h"

namespace stepcast::recorded_cases_test {
namespace {

using ::stepcast::testing::Told;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string Case(const std::string& name) {
  return testing::UnpackedFile(STEPCAST_SOURCE_DIR "/tests/data/cases/" + name);
}

class PieceSource final : public ByteSource {
 public:
  PieceSource(std::string_view text, size_t piece) : source_(text), piece_(piece) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    return source_.Read(buffer, std::min(size, piece_));
  }

 private:
  TextSource source_;
  const size_t piece_;
};

const PyTorchTraceOptions kOptions = {
    .recording = {
        .model = "m", .batch_size = 32, .platform = {.bandwidth_bytes_per_second = 1.25e8}}};

absl::StatusOr<ImportedProfile> Import(const std::string& text) {
  TextSource source(text);
  return ImportPyTorchTrace(source, kOptions, {}, NeverStop);
}

// The sizes of the all-reduces that are gradients', and of all others.
std::vector<int64_t> AllReduces(const Profile& profile, bool are_gradients) {
  std::vector<int64_t> sizes;
  for (const Operation& operation : profile.operations()) {
    if (operation.collective == Collective::kAllReduce && IsAcrossWorkers(operation) &&
        operation.parameter.empty() != are_gradients)
      sizes.push_back(operation.size_bytes);
  }
  return sizes;
}

struct GradientCase {
  const char* file;
  std::vector<int64_t> gradients;
  std::vector<int64_t> others;
  size_t steps;
  const char* note;
};

TEST(RecordedCasesTest, GradientsAreToldFromAllElse) {
  const std::vector<int64_t> plain = {4000, 1'600'000, 2400, 1'200'000};
  const std::vector<GradientCase> cases = {
      {"plain/trace.json", plain, {}, 4, "as DistributedDataParallel makes them by default"},
      {"unused_parameters_map/trace.json", plain, {16}, 4, "a map of unused parameters"},
      {"loss_between_backward_and_step/trace.json",
       plain,
       {4},
       4,
       "1 all-reduce a step of 4 bytes"},
      {"loss_between_backward_and_step/rank0.json", plain, {4}, 4, "no gradients"},
      {"loss_between_backward_and_step/real_rank1.json.gz",
       {400, 204'800, 2048, 1'048'576, 2048, 524'288},
       {4},
       5,
       "its size was not recorded"},
      {"tensor_parallel_all_reduce/trace.json", plain, {}, 4, "\"1\" (\"tp\")"},
      {"last_step_cut_off/trace.json", plain, {}, 3, "ProfilerStep#15 (1 collectives, others 2)"},
      {"last_step_cut_off/few_steps.json.gz",
       {40, 81'920, 32, 32, 2304, 32, 32, 32, 864, 32},
       {},
       1,
       "ProfilerStep#5 (2 collectives, others 3; it was not recorded to its end)"},
      {"loss_logged_every_third_step/trace.json", plain, {}, 4, "ProfilerStep#12 (3 collectives"},
      {"metadata_before_trace_events/trace.json", plain, {}, 4, "Found 4 steps"},
      {"times_as_texts/trace.json", plain, {}, 4, "Found 4 steps"}};
  for (const GradientCase& row : cases) {
    const absl::StatusOr<ImportedProfile> imported = Import(Case(row.file));
    ASSERT_TRUE(imported.ok()) << row.file << ": " << imported.status();
    EXPECT_EQ(AllReduces(imported->profile, true), row.gradients) << row.file;
    EXPECT_EQ(AllReduces(imported->profile, false), row.others) << row.file;
    EXPECT_EQ(imported->profile.steps().size(), row.steps) << row.file;
    EXPECT_THAT(absl::StrJoin(imported->notes, "\n"), HasSubstr(row.note)) << row.file;
  }
}

// An all-reduce of tensor parallelism stands in the computation, as long as it was recorded.
TEST(RecordedCasesTest, CollectivesOfOtherGroupsAreInsideAWorker) {
  const std::string text = Case("tensor_parallel_all_reduce/trace.json");
  const absl::StatusOr<ImportedProfile> imported = Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  EXPECT_EQ(profile.devices_per_worker(), 2);
  std::vector<const Operation*> inside;
  for (const Operation& operation : profile.operations()) {
    if (!operation.group.empty()) inside.push_back(&operation);
  }
  ASSERT_EQ(inside.size(), 1U);
  EXPECT_EQ(inside.front()->group, "tp");
  EXPECT_EQ(inside.front()->size_bytes, 262'144);
  EXPECT_EQ(inside.front()->collective, Collective::kAllReduce);
  const auto at = static_cast<size_t>(inside.front() - profile.operations().data());
  for (const RecordedStep& step : profile.steps()) {
    // From its launch to the end of its run.
    EXPECT_EQ(step.end_ns[at] - step.start_ns[at], 48'000);
    EXPECT_EQ(testing::LoneStepNs(profile, step), 20'000'000);
  }
}

// Four replicas of two contexts: gradients meet in a ring of eight, and a note says so.
TEST(RecordedCasesTest, ContextsThatReduceGradientsAreTold) {
  const std::string text = absl::StrReplaceAll(Case("tensor_parallel_all_reduce/trace.json"),
                                               {{"\"world_size\": 4", "\"world_size\": 8"},
                                                {"\"Group size\": 4", "\"Group size\": 8"},
                                                {"\"tp\"", "\"cp\""},
                                                {"default_pg", "dp_cp"}});
  const absl::StatusOr<ImportedProfile> imported = Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->profile.devices_per_worker(), 2);
  EXPECT_THAT(
      absl::StrJoin(imported->notes, "\n"),
      HasSubstr("in which each replica has 2 contexts. A prediction's all-reduces are among "
                "replicas, one member each: those of W workers send 2(W-1)/W of their "
                "bytes, where the job's send 2(2W-1)/(2W) of them"));
  EXPECT_THAT(absl::StrJoin(Import(Case("tensor_parallel_all_reduce/trace.json"))->notes, "\n"),
              ::testing::Not(HasSubstr("contexts")));
}

TEST(RecordedCasesTest, TheGroupOfGradientsMayBeSaid) {
  const std::string text = Case("tensor_parallel_all_reduce/trace.json");
  const auto import = [&text](const std::string& group) {
    TextSource source(text);
    PyTorchTraceOptions options = kOptions;
    options.data_parallel_group = group;
    return ImportPyTorchTrace(source, options, {}, NeverStop);
  };
  const auto said = import("0");
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(AllReduces(said->profile, true).size(), 4U);
  // Of the tensors' group they are no gradients: what is sent is as it was recorded.
  const auto other = import("tp");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(AllReduces(other->profile, false), std::vector<int64_t>{262'144});
  const auto unknown = import("dp");
  EXPECT_THAT(Told(unknown.status()),
              AllOf(HasSubstr("data_parallel_group"), HasSubstr("no group \"dp\""),
                    HasSubstr("\"1\" (\"tp\")")));
}

TEST(RecordedCasesTest, RanksOfAJobThatSendsALossAreOneRecording) {
  for (const char* const end : {".json", ""}) {
    std::vector<std::string> texts;
    for (const char* const rank : {"0", "1"}) {
      const std::string name =
          std::string(end[0] == 0 ? "real_rank" : "rank") + rank + (end[0] == 0 ? ".json.gz" : end);
      texts.push_back(Case("loss_between_backward_and_step/" + name));
    }
    TextSource first(texts[0]);
    TextSource second(texts[1]);
    const absl::StatusOr<MultiRankRecording> recording = ImportPyTorchRanks(
        {{.recording = &first, .name = "rank0"}, {.recording = &second, .name = "rank1"}}, kOptions,
        {}, NeverStop);
    ASSERT_TRUE(recording.ok()) << recording.status();
    ASSERT_EQ(recording->collectives.size(), 3U);
    EXPECT_EQ(recording->collectives.back().size_bytes, 4);
  }
}

// Within a hundredth of what hooks of autograd counted.
TEST(RecordedCasesTest, WhatRunsAgainIsNotKept) {
  for (const auto& [file, bytes, is_again] :
       {std::tuple("with", 353'796.0, true), std::tuple("piece_by_piece", 747'012.0, true),
        std::tuple("before_a_pool", 147'780.0, true), std::tuple("after_a_pool", 442'692.0, true),
        // Another forward pass of the step is none that runs again.
        std::tuple("micro_steps", 475'588.0, false), std::tuple("without", 747'012.0, false)}) {
    const auto imported = Import(Case(std::string("activation_checkpoint/") + file + ".json.gz"));
    ASSERT_TRUE(imported.ok()) << imported.status();
    int64_t kept = 0;
    for (const Operation& operation : imported->profile.operations()) kept += operation.kept_bytes;
    EXPECT_NEAR(static_cast<double>(kept), bytes, bytes / 100) << file;
    const std::string notes = absl::StrJoin(imported->notes, " ");
    EXPECT_EQ(notes.find("activation checkpointing") != std::string::npos, is_again) << notes;
  }
}

// A piece that runs again with an input of its own has a gradient of that, too, and it is none of
// the model's.
TEST(RecordedCasesTest, InputsOfReentrantCheckpointsAreNoParameters) {
  const auto imported = Import(Case("activation_checkpoint/reentrant.json.gz"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::vector<int64_t> gradients = AllReduces(imported->profile, true);
  EXPECT_EQ(gradients.size(), 12U);
  EXPECT_EQ(std::accumulate(gradients.begin(), gradients.end(), int64_t{0}), 4'934'032);
  EXPECT_FALSE(imported->profile.content().buckets.value().sizes_bytes.empty());
}

// A recording without shapes knows its buckets alone.
TEST(RecordedCasesTest, OtherBucketsAreRefusedWhereGradientsAreUnknown) {
  std::string bare = Case("plain/trace.json");
  for (size_t at = bare.find("\"Input Dims\""); at != std::string::npos;
       at = bare.find("\"Input Dims\"", at))
    bare.replace(at, 12, "\"Other Dims\"");
  for (const bool has_shapes : {true, false}) {
    const auto imported = Import(has_shapes ? Case("plain/trace.json") : bare);
    ASSERT_TRUE(imported.ok()) << imported.status();
    for (const bool asks : {true, false}) {
      AllReduceDraft draft;
      if (asks) draft.fusion = Buckets{};
      const auto scenario =
          ResolveScenario(imported->profile, {.workers = 4, .communication = draft});
      EXPECT_EQ(scenario.ok(), has_shapes || !asks) << scenario.status();
      if (!scenario.ok()) {
        EXPECT_THAT(Told(scenario.status()), HasSubstr("2 buckets and not of the gradients"));
      }
    }
  }
}

// Two models, one after the other, as a GAN has, and twice one model: what follows a backward pass
// waits for what it sent, so that buckets of both are none that could be asked for.
TEST(RecordedCasesTest, EachBackwardPassOfAStepSendsItsOwnBuckets) {
  for (const char* const file : {"two_models", "two_losses"}) {
    const auto imported = Import(Case(absl::StrCat("several_backward_passes/", file, ".json.gz")));
    ASSERT_TRUE(imported.ok()) << imported.status();
    const std::string notes = absl::StrJoin(imported->notes, " ");
    EXPECT_THAT(notes, HasSubstr("2 backward passes a step that send gradients"));
    EXPECT_THAT(notes, HasSubstr("keeps 0.4755 MB"));
    EXPECT_EQ(notes.find("activation checkpointing"), std::string::npos);
    const std::vector<Operation>& operations = imported->profile.operations();
    std::vector<int32_t> sent;
    for (size_t i = 0; i < operations.size(); ++i) {
      if (!SumsGradients(operations[i])) continue;
      EXPECT_EQ(operations[i].size_bytes, 85'320);
      sent.push_back(static_cast<int32_t>(i));
    }
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_TRUE(std::any_of(
        operations.begin() + sent[0], operations.begin() + sent[1], [&](const Operation& each) {
          return std::count(each.waiting_for.begin(), each.waiting_for.end(), sent[0]) > 0;
        }));
    const auto scenario = ResolveScenario(
        imported->profile, {.workers = 4, .communication = AllReduceDraft{.fusion = Buckets{}}});
    EXPECT_THAT(Told(scenario.status()), HasSubstr("2 buckets and not of the gradients"));
  }
}

// The events of a case, each as `edit` leaves it.
std::string Edited(const std::string& name, const std::function<void(nlohmann::json&)>& edit) {
  nlohmann::json trace = nlohmann::json::parse(Case(name));
  for (nlohmann::json& event : trace.at("traceEvents")) edit(event);
  return trace.dump();
}

using Events = nlohmann::json::array_t;

// A case whose events are others.
std::string WithEvents(const std::string& name, const std::function<void(Events&)>& edit) {
  nlohmann::json trace = nlohmann::json::parse(Case(name));
  edit(trace.at("traceEvents").get_ref<Events&>());
  return trace.dump();
}

std::string NameOf(const nlohmann::json& event) { return event.at("name").get<std::string>(); }
int64_t StartOf(const nlohmann::json& event) { return event.at("ts").get<int64_t>(); }
bool IsStep(const nlohmann::json& event) { return NameOf(event).starts_with("ProfilerStep#"); }
bool IsSent(const nlohmann::json& event) {
  const std::string name = NameOf(event);
  return name == "c10d::allreduce_" || name == "record_param_comms" || name == "gloo:all_reduce";
}

// One more collective in each step of the case `plain`, so many microseconds after its begin.
struct Extra {
  int64_t at_us = 0;
  int64_t elements = 0;
  const char* collective = "allreduce";
};
void Add(const Extra& extra, Events& events) {
  const Events before = events;
  for (const nlohmann::json& step : before) {
    if (!IsStep(step)) continue;
    const auto event = [&](const std::string& name, const char* category, int64_t after_us) {
      events.push_back({{"ph", "X"},
                        {"cat", category},
                        {"name", name},
                        {"ts", StartOf(step) + extra.at_us + after_us},
                        {"dur", 6},
                        {"args", nlohmann::json::object()}});
    };
    event(absl::StrCat("c10d::", extra.collective, "_"), "cpu_op", 0);
    event("record_param_comms", "cpu_op", 1);
    events.back()["args"] = {{"Collective name", extra.collective},
                             {"In msg nelems", extra.elements},
                             {"Out msg nelems", extra.elements},
                             {"dtype", "Float"},
                             {"Group size", 4},
                             {"Process Group Name", "0"}};
    event(absl::StrCat("gloo:", extra.collective), "user_annotation", 2);
  }
}

std::vector<int64_t> SentSizes(const Profile& profile, std::optional<Buckets> buckets) {
  AllReduceDraft draft;
  if (buckets.has_value()) draft.fusion = *buckets;
  const auto scenario = ResolveScenario(profile, {.workers = 4, .communication = draft});
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return {};
  const auto program = BuildCollectiveProgram(profile, *scenario, NeverStop);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  std::vector<int64_t> sizes;
  for (const PlannedCollective& collective : program->collectives)
    sizes.push_back(collective.is_gradient ? collective.bytes : -collective.bytes);
  return sizes;
}

// Statistics of a batch, activations, a loss: of any size and anywhere, they are in no bucket,
// neither in a recorded one nor in one that is asked for.
TEST(RecordedCasesTest, AllReducesOfOtherThingsAreInNoBucket) {
  for (const Extra& extra : std::vector<Extra>{{.at_us = 50, .elements = 1},
                                               {.at_us = 700, .elements = 516},
                                               {.at_us = 7600, .elements = 65'536},
                                               {.at_us = 7700, .elements = 128},
                                               {.at_us = 7700, .elements = 1000},
                                               {.at_us = 9700, .elements = 128},
                                               {.at_us = 11'700, .elements = 1},
                                               {.at_us = 14'050, .elements = 300'600}}) {
    const auto imported =
        Import(WithEvents("plain/trace.json", [&](Events& events) { Add(extra, events); }));
    ASSERT_TRUE(imported.ok()) << extra.at_us << ": " << imported.status();
    const Profile& profile = imported->profile;
    EXPECT_THAT(AllReduces(profile, true), ElementsAre(4000, 1'600'000, 2400, 1'200'000));
    EXPECT_THAT(AllReduces(profile, false), ElementsAre(4 * extra.elements));
    EXPECT_THAT(profile.content().buckets.value().sizes_bytes, ElementsAre(1'604'000, 1'202'400));
    EXPECT_THAT(absl::StrJoin(imported->notes, "\n"),
                HasSubstr(absl::StrCat("no gradients: 1 all-reduce a step of ", 4 * extra.elements,
                                       " bytes")));
    const std::vector<int64_t> recorded = SentSizes(profile, std::nullopt);
    EXPECT_THAT(recorded, UnorderedElementsAre(1'604'000, 1'202'400, -4 * extra.elements));
    EXPECT_EQ(SentSizes(profile, Buckets{}), recorded) << extra.at_us;
    const Buckets all = {.first_bytes = 1 << 23, .cap_bytes = 1 << 23};
    EXPECT_THAT(SentSizes(profile, all), UnorderedElementsAre(2'806'400, -4 * extra.elements));
  }
}

// Three numbers of a metric, after all gradients: also where sizes of these are not known, or some
// did not come.
TEST(RecordedCasesTest, WhatIsLaunchedAfterNoGradientIsNoBucket) {
  for (const bool is_unused : {true, false}) {
    const auto imported = Import(WithEvents("plain/trace.json", [&](Events& events) {
      std::erase_if(events, [&](const nlohmann::json& event) {
        return is_unused && event["args"].contains("Input Dims") &&
               event["args"]["Input Dims"] == nlohmann::json({{600}});
      });
      for (nlohmann::json& event : events) {
        if (!is_unused) event["args"].erase("Input Dims");
      }
      Add({.at_us = 14'050, .elements = 3}, events);
    }));
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_THAT(imported->profile.content().buckets.value().sizes_bytes,
                ElementsAre(1'604'000, 1'202'400));
    EXPECT_THAT(absl::StrJoin(imported->notes, "\n"), HasSubstr("1 all-reduce a step of 12 bytes"));
  }
}

// SyncBatchNorm on NCCL gathers its statistics; a sharded model gathers its parameters.
TEST(RecordedCasesTest, WhatIsGatheredBesideWholeGradientsIsNoShard) {
  const Extra statistics = {.at_us = 700, .elements = 516, .collective = "_allgather_base"};
  const auto gathers = [&](bool has_gradients) {
    return Import(WithEvents("plain/trace.json", [&](Events& events) {
      if (!has_gradients) std::erase_if(events, IsSent);
      Add(statistics, events);
    }));
  };
  const auto imported = gathers(true);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(SentSizes(imported->profile, std::nullopt),
              UnorderedElementsAre(1'604'000, 1'202'400, -2064));
  EXPECT_THAT(Told(gathers(false).status()), HasSubstr("FSDP"));
}

// So many steps of the case `plain`; those that do not send only accumulate.
std::string MicroSteps(size_t count, const std::function<bool(size_t)>& sends) {
  return WithEvents("plain/trace.json", [&](Events& events) {
    constexpr int64_t kStepUs = 20'000;
    const int64_t begin = StartOf(*std::find_if(events.begin(), events.end(), IsStep));
    Events one;
    std::copy_if(events.begin(), events.end(), std::back_inserter(one),
                 [&](const nlohmann::json& event) {
                   return StartOf(event) >= begin && StartOf(event) < begin + kStepUs;
                 });
    events.clear();
    for (size_t step = 0; step < count; ++step) {
      for (nlohmann::json event : one) {
        const std::string name = NameOf(event);
        const bool is_of_end = IsSent(event) || name.starts_with("Optimizer.step#") ||
                               name.find("copy_bucket_to_grad") != std::string::npos;
        if (is_of_end && !sends(step)) continue;
        event["ts"] = StartOf(event) + static_cast<int64_t>(step) * kStepUs;
        if (IsStep(event)) event["name"] = absl::StrCat("ProfilerStep#", 10 + step);
        if (event["args"].contains("Sequence number")) {
          event["args"]["Sequence number"] =
              event["args"]["Sequence number"].get<int64_t>() + static_cast<int64_t>(step) * 100;
        }
        events.push_back(std::move(event));
      }
    }
  });
}

TEST(RecordedCasesTest, MicroStepsOfAnAccumulatedGradientAreOneStep) {
  for (const size_t micro_steps : {size_t{2}, size_t{3}, size_t{4}}) {
    const auto imported =
        Import(MicroSteps(14, [=](size_t step) { return (step + 1) % micro_steps == 0; }));
    ASSERT_TRUE(imported.ok()) << micro_steps << ": " << imported.status();
    const Profile& profile = imported->profile;
    EXPECT_THAT(AllReduces(profile, true), ElementsAre(4000, 1'600'000, 2400, 1'200'000));
    EXPECT_EQ(profile.steps().size(), 14 / micro_steps - 1);
    for (const RecordedStep& step : profile.steps()) {
      EXPECT_NEAR(static_cast<double>(testing::LoneStepNs(profile, step)),
                  static_cast<double>(micro_steps) * 20e6, 1e5);
    }
    EXPECT_THAT(absl::StrJoin(imported->notes, "\n"),
                HasSubstr(absl::StrCat("Joined: each ", micro_steps, " ProfilerSteps")));
  }
  const auto irregular =
      Import(MicroSteps(14, [](size_t step) { return step == 4 || step == 7 || step == 13; }));
  EXPECT_THAT(Told(irregular.status()),
              HasSubstr("call p.step() once for each step of the optimizer"));
}

// A profiler that stops before the GPU has ended its last step.
TEST(RecordedCasesTest, AStepWhoseLastKernelsWereNotRecordedIsLeftOut) {
  const auto import = [](int percent) {
    nlohmann::json trace =
        nlohmann::json::parse(testing::WritePyTorchTrace({.gpu = true, .steps = 7}).text);
    auto& events = trace.at("traceEvents").get_ref<Events&>();
    const auto is_of_gpu = [](const nlohmann::json& event) {
      return event.contains("cat") && event["cat"] == "kernel";
    };
    std::vector<double> starts;
    for (const nlohmann::json& event : events)
      if (is_of_gpu(event)) starts.push_back(event["ts"].get<double>());
    std::sort(starts.begin(), starts.end());
    const size_t of_step = starts.size() / 7;
    const size_t lost = of_step * static_cast<size_t>(percent) / 100;
    const double from = lost == 0 ? HUGE_VAL : starts[starts.size() - lost];
    std::erase_if(events, [&](const nlohmann::json& event) {
      return is_of_gpu(event) && event["ts"].get<double>() >= from;
    });
    return Import(trace.dump());
  };
  const auto whole = import(0);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->profile.steps().size(), 5U);
  for (const int percent : {10, 50, 100}) {
    const auto cut = import(percent);
    ASSERT_TRUE(cut.ok()) << percent << ": " << cut.status();
    ASSERT_EQ(cut->profile.steps().size(), 4U) << percent;
    EXPECT_EQ(cut->profile.steps().back(), whole->profile.steps()[3]);
    EXPECT_THAT(absl::StrJoin(cut->notes, "\n"), HasSubstr("it was not recorded to its end"));
  }
}

TEST(RecordedCasesTest, AllThatIsMissingIsSaidAtOnce) {
  nlohmann::json trace = nlohmann::json::parse(WithEvents("plain/trace.json", [](Events& events) {
    std::erase_if(events, IsStep);
    for (nlohmann::json& event : events) event["args"].erase("Input Dims");
  }));
  trace["deviceProperties"] = {{{"id", 0}}};
  EXPECT_THAT(Told(Import(trace.dump()).status()),
              AllOf(HasSubstr("no ProfilerStep"), HasSubstr("nothing that ran on the GPU"),
                    HasSubstr("no shapes"), HasSubstr("ProfilerActivity.CUDA")));
}

bool IsAllReduce(const nlohmann::json& event) { return event.at("args").contains("In msg nelems"); }

// A map of unused parameters runs beside the buckets, so that its place among them varies.
TEST(RecordedCasesTest, TheMapOfUnusedParametersMayComeAnywhere) {
  constexpr std::array<int64_t, 3> kEarlier = {0, 2400, 3900};
  constexpr int64_t kFirstStep = 1'000'000;
  constexpr int64_t kStep = 20'000;
  constexpr int64_t kMapAt = 13'400;  // of a step
  constexpr int64_t kLastOfMap = 8;
  const auto imported = Import(Edited("unused_parameters_map/trace.json", [&](auto& event) {
    const int64_t at = event.at("ts").template get<int64_t>() - kFirstStep;
    if (at % kStep >= kMapAt && at % kStep <= kMapAt + kLastOfMap)
      event["ts"] = kFirstStep + at - kEarlier[static_cast<size_t>(at / kStep) % kEarlier.size()];
  }));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->profile.steps().size(), 4U);
  EXPECT_THAT(AllReduces(imported->profile, true), ElementsAre(4000, 1'600'000, 2400, 1'200'000));
  EXPECT_THAT(AllReduces(imported->profile, false), ElementsAre(16));
}

TEST(RecordedCasesTest, GradientsMayBeSentAsWholeNumbers) {
  const auto imported = Import(Edited("plain/trace.json", [](auto& event) {
    if (IsAllReduce(event)) event["args"]["dtype"] = "Byte";
  }));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(AllReduces(imported->profile, true), ElementsAre(1000, 400'000, 600, 300'000));
  EXPECT_THAT(imported->profile.content().buckets.value().sizes_bytes,
              ElementsAre(401'000, 300'600));
  EXPECT_EQ(imported->profile.content().buckets->sent_share, 0.25);
}

TEST(RecordedCasesTest, NumbersMayBeTexts) {
  const auto plain = Import(Case("tensor_parallel_all_reduce/trace.json"));
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto imported = Import(Edited("tensor_parallel_all_reduce/trace.json", [](auto& event) {
    for (auto& [key, value] : event["args"].items())
      if (value.is_number()) value = value.dump();
  }));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->notes, plain->notes);
  EXPECT_EQ(imported->profile.operations(), plain->profile.operations());
}

// Matrices of 500 x 800 and 600 x 500 of rank 2; what is no matrix is sent first, as it is.
TEST(RecordedCasesTest, PowerSgdIsRefusedByItsName) {
  const auto sent_as = [](const std::vector<std::vector<int64_t>>& buckets) {
    nlohmann::json trace = nlohmann::json::parse(Case("plain/trace.json"));
    nlohmann::json events = nlohmann::json::array();
    for (nlohmann::json event : trace.at("traceEvents")) {
      if (event["name"] == "torch::autograd::AccumulateGrad") {
        nlohmann::json& shape = event["args"]["Input Dims"][0];
        if (shape[0] == 400'000) shape = {500, 800};
        if (shape[0] == 300'000) shape = {600, 500};
      }
      if (event["name"] != "record_param_comms") {
        const std::string name = event["name"];
        const bool is_other_part = name == "c10d::allreduce_" || name == "gloo:all_reduce";
        if (!is_other_part) events.push_back(event);
        continue;
      }
      for (const int64_t elements : buckets[event["args"]["In msg nelems"] == 401'000 ? 0 : 1]) {
        event["args"]["In msg nelems"] = event["args"]["Out msg nelems"] = elements;
        event["ts"] = event["ts"].get<int64_t>() + 50;
        events.push_back(event);
      }
    }
    trace["traceEvents"] = events;
    return Import(trace.dump());
  };
  const auto split = sent_as({{1000, 1000, 1600}, {600, 1200, 1000}});
  EXPECT_THAT(Told(split.status()),
              AllOf(HasSubstr("PowerSGD of rank 2"), HasSubstr("6400 elements for gradients of "),
                    HasSubstr("start_powerSGD_iter")));
  const auto batched = sent_as({{3 * 634, 3 * 634}, {3 * 549, 3 * 549}});
  EXPECT_THAT(Told(batched.status()), HasSubstr("PowerSGD of rank 3"));
  // Steps before it begins.
  const auto before = sent_as({{401'000}, {300'600}});
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_THAT(AllReduces(before->profile, true), ElementsAre(4000, 1'600'000, 2400, 1'200'000));
}

// DistributedDataParallel assigns buckets by the size of the gradients, before a hook compresses
// them: its default cap, with which it was recorded, makes the recorded buckets.
TEST(RecordedCasesTest, CapsHoldForGradientsThatAHookCompresses) {
  const auto imported = Import(Case("fp16_compress_hook/trace.json"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  EXPECT_EQ(AllReduces(profile, true), (std::vector<int64_t>{2000, 800'000, 1200, 600'000}));
  const RecordedBuckets& buckets = profile.content().buckets.value();
  EXPECT_THAT(buckets.sizes_bytes, ElementsAre(802'000, 601'200));
  EXPECT_EQ(buckets.sent_share, 0.5);
  const std::string notes = absl::StrJoin(imported->notes, "\n");
  EXPECT_THAT(notes, HasSubstr("0.5 bytes are sent of each of theirs"));
  EXPECT_THAT(notes, HasSubstr("as DistributedDataParallel makes them by default"));
  // 1 MiB of gradients, half as much sent, closes the first bucket of 802,000 bytes, and 1.3 not.
  const auto sent_by = [&profile](double mebibytes) {
    const auto cap = static_cast<int64_t>(mebibytes * (1 << 20));
    return GradientsByBucket(
        AllReduces(profile, true),
        AsSent({.first_bytes = cap, .cap_bytes = cap}, profile.content().buckets));
  };
  EXPECT_THAT(sent_by(1), ElementsAre(2, 2));
  EXPECT_THAT(sent_by(1.6), ElementsAre(4));
  EXPECT_EQ(
      GradientsByBucket(AllReduces(profile, true), AsSent(Buckets{}, profile.content().buckets)),
      GradientsByBucket(AllReduces(profile, true), buckets));
}

TEST(RecordedCasesTest, ReasonsAreTrue) {
  std::string foreign = Case("plain/trace.json");
  foreign.replace(foreign.find("aten::relu"), 4, "at\xff\xfe");
  EXPECT_THAT(Told(Import(foreign).status()), HasSubstr("bytes that are not UTF-8"));
  EXPECT_THAT(Told(Import(Case("control_character/trace.json")).status()),
              AllOf(HasSubstr("a control character in a text"), HasSubstr("byte ")));
  EXPECT_EQ(KindOf(Case("control_character/trace.json")), FileKind::kPyTorchTrace);
  EXPECT_THAT(Told(Import(Case("nan_in_args/trace.json")).status()),
              HasSubstr("NaN, which is not a number of JSON"));
  for (const auto& [field, number, why] :
       {std::tuple("dur", "1e400", "the number \"1e400\" is larger than any that can be read"),
        std::tuple("In msg nelems", "9223372036854775807", "msg nelems of 9223372036854775807")}) {
    std::string huge = Case("plain/trace.json");
    const size_t begin = huge.find(absl::StrCat("\"", field, "\": ")) + std::strlen(field) + 4;
    huge.replace(begin, huge.find_first_of(",\n", begin) - begin, number);
    EXPECT_THAT(Told(Import(huge).status()), AllOf(HasSubstr(why), HasSubstr("byte ")));
  }
  std::string text = Case("plain/trace.json");
  const std::string key = "\"Process Group Description\": \"default_pg\"";
  ASSERT_NE(text.find(key), std::string::npos);
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
    text.replace(at, key.size(), "\"Process Group Description\": ,\"x\": 1");
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{1} << 16}) {
    PieceSource source(text, piece);
    const auto imported = ImportPyTorchTrace(source, kOptions, {}, NeverStop);
    ASSERT_TRUE(imported.ok()) << imported.status() << " in pieces of " << piece;
    EXPECT_EQ(AllReduces(imported->profile, true).size(), 4U);
  }
}

TEST(RecordedCasesTest, FormatsAreToldByTheirContent) {
  EXPECT_EQ(KindOf(Case("horovod_marked_cycles/timeline.json")), FileKind::kHorovodTimeline);
  EXPECT_EQ(KindOf(Case("metadata_before_trace_events/trace.json")), FileKind::kPyTorchTrace);
  using std::string_literals::operator""s;
  EXPECT_EQ(KindOf("\x08\x0a\x05"
                   "0.0.4\x2a\x08\x01"s),
            FileKind::kChakra);
  EXPECT_EQ(KindOf("\x0a\x20\x08\x02\x12\x09/host:CPU\x1a\x02\x08\x01"s), FileKind::kXPlane);
  EXPECT_EQ(KindOf("\x0a\x20\x0a\x1e\x0a\x09/job:a/cp\x12\x02\x08\x01"s), FileKind::kBinary);
  EXPECT_EQ(KindOf(R"({"traceEvents": [{"ph": "M", "args": {"name": "XLA Ops"}}]})"),
            FileKind::kXPlane);
  EXPECT_EQ(KindOf(R"({"traceEvents": [{"ph": "X", "pid": "Comm.byteps.gradient_0"}]})"),
            FileKind::kBytePsTimeline);
}

struct BenchmarkCase {
  const char* file;
  const char* refusal;  // empty: it is read
  std::vector<std::pair<Collective, int32_t>> points;
};

TEST(RecordedCasesTest, BenchmarksAreToldByTheirTest) {
  const auto six = [](Collective kind, int32_t workers) {
    return std::vector<std::pair<Collective, int32_t>>(6, {kind, workers});
  };
  std::vector<std::pair<Collective, int32_t>> both = six(Collective::kAllReduce, 8);
  for (const auto& point : six(Collective::kAllGather, 8)) both.push_back(point);
  const std::vector<BenchmarkCase> cases = {
      {"nccl_alltoall/alltoall.txt", "\"alltoall_perf\" is not", {}},
      {"nccl_alltoall/alltoall_2021.txt", "an all-gather and an all-to-all are alike", {}},
      {"nccl_sendrecv/sendrecv_2.txt", "\"sendrecv_perf\" is not", {}},
      {"nccl_sendrecv/sendrecv_8.txt", "\"sendrecv_perf\" is not", {}},
      {"nccl_reduce/reduce_2.txt", "\"reduce_perf\" is not", {}},
      {"nccl_reduce/reduce_8.txt", "\"reduce_perf\" is not", {}},
      {"nccl_two_tests_in_one_log/log.txt", "\"alltoall_perf\" is not", {}},
      {"nccl_two_tests_in_one_log/all_reduce_then_all_gather.txt", "", both},
      {"nccl_debug_inside_a_row/log.txt", "NCCL_DEBUG's output is inside the row", {}},
      {"nccl_json/rccl_tests.jsonl", "", six(Collective::kAllReduce, 4)}};
  for (const BenchmarkCase& row : cases) {
    const auto measured = ReadCollectiveBenchmark(Case(row.file), {});
    if (*row.refusal != 0) {
      ASSERT_FALSE(measured.ok()) << row.file;
      EXPECT_THAT(Told(measured.status()),
                  AllOf(HasSubstr(row.refusal), HasSubstr("kind,workers,size_bytes,seconds")))
          << row.file;
      continue;
    }
    ASSERT_TRUE(measured.ok()) << row.file << ": " << measured.status();
    std::vector<std::pair<Collective, int32_t>> points;
    for (const MeasuredCollective& point : *measured)
      points.emplace_back(point.kind, point.workers);
    EXPECT_EQ(points, row.points) << row.file;
  }
}

TEST(RecordedCasesTest, JsonOfNcclTestsAsksForItsWorkersAlone) {
  const std::string text = Case("nccl_json/nccl_tests.json");
  EXPECT_THAT(Told(ReadCollectiveBenchmark(text, {}).status()),
              HasSubstr("say how many took part"));
  const auto measured = ReadCollectiveBenchmark(text, {.workers = 8});
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_EQ(measured->size(), 6U);
  EXPECT_EQ(measured->front(), (MeasuredCollective{.kind = Collective::kAllReduce,
                                                   .workers = 8,
                                                   .size_bytes = 1'048'576,
                                                   .seconds = 60.48576e-6}));
}

// One test alone, and the points that it measured.
std::string AllReduceLog() {
  const std::string both = Case("nccl_two_tests_in_one_log/all_reduce_then_all_gather.txt");
  return both.substr(0, both.find("# Collective test starting: all_gather_perf"));
}

TEST(RecordedCasesTest, HostsOfRanksAreTold) {
  std::vector<std::string> notes;
  ASSERT_TRUE(ReadCollectiveBenchmark(AllReduceLog(), {}, {}, &notes).ok());
  EXPECT_THAT(notes, ElementsAre("Its 8 ranks are on 2 hosts, 4 at most on each: workers_per_node "
                                 "is 4."));
  const std::string alone = absl::StrReplaceAll(AllReduceLog(), {{"node1", "node0"}});
  ASSERT_TRUE(ReadCollectiveBenchmark(alone, {}, {}, &notes).ok());
  EXPECT_THAT(notes, ElementsAre("Its 8 ranks are on one host: workers_per_node is 8."));
  // A rank without its line may be anywhere.
  std::string cut = AllReduceLog();
  cut.erase(cut.find("#  Rank  0"), cut.find("#  Rank  1") - cut.find("#  Rank  0"));
  ASSERT_TRUE(ReadCollectiveBenchmark(cut, {}, {}, &notes).ok());
  EXPECT_TRUE(notes.empty());
}

TEST(RecordedCasesTest, MarksOfLaunchersAndColoursChangeNothing) {
  using Edit = std::function<std::string(size_t, const std::string&)>;
  const std::vector<Edit> edits = {
      [](size_t, const std::string& line) { return "\x1b[1;32m" + line + "\x1b[0m"; },
      [](size_t at, const std::string& line) {
        return absl::StrCat("[1,", at % 12, "]<stdout>:", line);
      },
      [](size_t at, const std::string& line) {
        return absl::StrCat("2026-01-02 03:04:", 10 + at, " [1,", at % 3, "]<stdout>:", line);
      },
      [](size_t, const std::string& line) { return "  3: " + line; },
      [](size_t, const std::string& line) { return line + "\r"; },
      [](size_t at, const std::string& line) {
        return at == 0 ? "NCCL version 2.18.3\n" + line : line;
      }};
  const std::string log = AllReduceLog();
  const auto plain = ReadCollectiveBenchmark(log, {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  ASSERT_EQ(plain->size(), 6U);
  for (size_t e = 0; e < edits.size(); ++e) {
    std::vector<std::string> lines = absl::StrSplit(log, '\n');
    for (size_t i = 0; i < lines.size(); ++i) lines[i] = edits[e](i, lines[i]);
    const std::string edited = absl::StrJoin(lines, "\n");
    EXPECT_NE(KindOf(edited), FileKind::kBinary) << e;
    const auto measured = ReadCollectiveBenchmark(edited, {});
    ASSERT_TRUE(measured.ok()) << e << ": " << measured.status();
    EXPECT_EQ(*measured, *plain) << e;
  }
  const auto measured = ReadCollectiveBenchmark(absl::StrReplaceAll(log, {{"\n", "\r"}}), {});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(*measured, *plain);
}

TEST(RecordedCasesTest, TestsOfNoKnownNameAreRefusedByIt) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    return Told(
        ReadCollectiveBenchmark(absl::StrReplaceAll(AllReduceLog(), {{from, to}}), {}).status());
  };
  EXPECT_THAT(refusal("all_reduce_perf", "ring_exchange_perf"),
              HasSubstr("\"ring_exchange_perf\" is not"));
  EXPECT_THAT(refusal("60.49", "60,49"),
              AllOf(HasSubstr("line 17"), HasSubstr("write its decimals after a point")));
}

TEST(RecordedCasesTest, LaunchersSayTheirWorkersInManyWays) {
  for (const char* const launch : {"mpirun -np 8", "mpirun --np 8", "srun -n8", "srun --ntasks=8",
                                   "srun --ntasks-per-node=4 -n 8", "mpiexec -n 8"}) {
    const auto measured = ReadCollectiveBenchmark(
        absl::StrCat(launch,
                     " ./osu_allreduce\n# OSU NCCL Allreduce Latency Test v7.0\n"
                     "# Size       Avg Latency(us)\n1048576   100.00\n"),
        {});
    ASSERT_TRUE(measured.ok()) << launch << ": " << measured.status();
    ASSERT_EQ(measured->size(), 1U);
    EXPECT_EQ(measured->front().workers, 8) << launch;
  }
}

TEST(RecordedCasesTest, TablesMayBeDividedInOtherWays) {
  const std::string table =
      "kind,workers,size_bytes,seconds\nALL_REDUCE,8,1048576,0.001\nALL_REDUCE,8,4194304,0.003\n";
  const auto plain = ReadCollectiveBenchmark(table, {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (const std::string& other :
       {absl::StrReplaceAll(table, {{",", ";"}}), absl::StrReplaceAll(table, {{",", "\t"}}),
        absl::StrReplaceAll(table, {{"kind", "Kind"}, {"size_bytes", "Size_Bytes"}})}) {
    const auto measured = ReadCollectiveBenchmark(other, {});
    ASSERT_TRUE(measured.ok()) << other << measured.status();
    EXPECT_EQ(*measured, *plain) << other;
  }
}

TEST(RecordedCasesTest, ObjectsMayFollowALaunchersMark) {
  const std::string text = Case("nccl_json/rccl_tests.jsonl");
  const auto plain = ReadCollectiveBenchmark(text, {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto marked = ReadCollectiveBenchmark(
      "[1,0]<stdout>:" + absl::StrReplaceAll(text, {{"}\n{", "}\n[1,0]<stdout>:{"}}), {});
  ASSERT_TRUE(marked.ok()) << marked.status();
  EXPECT_EQ(*marked, *plain);
  const std::string broken = absl::StrReplaceAll(text, {{"\"time\": 60.48576", "\"time\": NaN"}});
  EXPECT_THAT(Told(ReadCollectiveBenchmark(broken, {}).status()), HasSubstr("NaN at byte "));
}

TEST(RecordedCasesTest, MpiBenchmarksAreReadByTest) {
  const std::string osu =
      "# OSU MPI-CUDA Allreduce Latency Test v7.0\n"
      "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
      "1048576   100.00  90.00 110.00 1000\n"
      "# OSU MPI Allgather Latency Test v7.0\n# Size       Avg Latency(us)\n1048576   200.00\n";
  const auto of_osu = ReadCollectiveBenchmark(osu, {.workers = 4});
  ASSERT_TRUE(of_osu.ok()) << of_osu.status();
  EXPECT_THAT(*of_osu, ElementsAre(MeasuredCollective{.kind = Collective::kAllReduce,
                                                      .workers = 4,
                                                      .size_bytes = 1 << 20,
                                                      .seconds = 100e-6},
                                   MeasuredCollective{.kind = Collective::kAllGather,
                                                      .workers = 4,
                                                      .size_bytes = 4 << 20,
                                                      .seconds = 200e-6}));
  const std::string head = "#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part\n";
  const std::string allreduce =
      "# Benchmarking Allreduce \n# #processes = 4 \n"
      "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      "            0         1000         0.03         0.04         0.03\n"
      "      1048576           40        90.00       110.00       100.00\n";
  const std::string ping =
      "# Benchmarking PingPong \n# #processes = 2 \n"
      "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
      "         1024         1000         2.00       500.00\n";
  for (const auto& [text, kind] : {std::pair(head + allreduce, Collective::kUnspecified),
                                   std::pair(head + ping + allreduce, Collective::kAllReduce)}) {
    const auto measured = ReadCollectiveBenchmark(text, {.kind = kind});
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_THAT(*measured, ElementsAre(MeasuredCollective{.kind = Collective::kAllReduce,
                                                          .workers = 4,
                                                          .size_bytes = 1 << 20,
                                                          .seconds = 100e-6}));
  }
  EXPECT_THAT(Told(ReadCollectiveBenchmark(head + ping + allreduce, {}).status()),
              HasSubstr("\"PingPong\" is not"));
}

}  // namespace
}  // namespace stepcast::recorded_cases_test
