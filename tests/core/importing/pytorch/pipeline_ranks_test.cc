#include "core/importing/pytorch/pipeline_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "core/base/error.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "core/model/scenario.h"
#include "core/model/stage_map.h"

namespace stepcast::pipeline_ranks_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The trace of a stage of GPipe, two micro-batches: times are in microseconds from each step's
// begin, which is at 1000 times its number.
class StageTrace {
 public:
  explicit StageTrace(int rank) : rank_(rank) {}

  void Add(const std::string& name, int at, int length, const std::string& shape = "") {
    const bool is_annotation = name[0] == 'D' || name[0] == 'g' || name[0] == 'O' || name[0] == 'P';
    absl::StrAppend(&events_, events_.empty() ? "" : ",\n", R"({"ph": "X", "cat": ")",
                    is_annotation ? "user_annotation" : "cpu_op", R"(", "name": ")", name,
                    R"(", "ts": )", begin_ + at, R"(, "dur": )", length, R"(, "args": {)",
                    shape.empty() ? ""
                                  : absl::StrCat(R"("Input Dims": [[)", shape,
                                                 R"(]], "Input type": ["float"])"),
                    "}}");
  }
  void Forward(int at, int length) { Add("DistributedDataParallel.forward", at, length); }
  // Each gradient's function takes 10 of its time.
  void Backward(int at, const std::vector<std::pair<int, std::string>>& gradients) {
    for (const auto& [length, shape] : gradients) {
      Add("autograd::engine::evaluate_function: LinearBackward", at, length - 10);
      Add("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at + length - 10,
          10);
      Add("torch::autograd::AccumulateGrad", at + length - 9, 8, shape);
      at += length;
    }
  }
  void Receive(int at, int until, const std::string& shape) {
    Add("c10d::recv_", at, 5);
    Add("gloo:recv", at + 1, until - at, shape);
  }
  void Send(int at, int until, const std::string& shape) {
    Add("c10d::send", at, 5);
    Add("gloo:send", at + 1, until - at, shape);
  }
  void Step(int number) {
    begin_ = 1000 * number;
    Add(absl::StrCat("ProfilerStep#", number), 0, 1000);
  }
  std::string Text() const {
    return absl::StrCat(R"({"distributedInfo": {"rank": )", rank_,
                        R"(, "world_size": 2}, "traceEvents": [)", events_, "]}");
  }

 private:
  int rank_;
  int begin_ = 0;
  std::string events_;
};

std::string FirstStage(int rank = 0) {
  StageTrace trace(rank);
  for (int step = 3; step < 6; ++step) {
    trace.Step(step);
    for (int k = 0; k < 2; ++k) trace.Receive(k, 500 + 100 * k, "4, 5");
    trace.Forward(10, 30 + step);
    trace.Send(50, 900, "4, 5");
    trace.Forward(60, 40);
    trace.Send(110, 900, "4, 5");
    trace.Backward(500, {{50, "7"}, {30, "3, 3"}});
    trace.Backward(700, {{60, "7"}, {30, "3, 3"}});
    trace.Add("Optimizer.step#SGD.step", 850, 20);
  }
  return trace.Text();
}

std::string LastStage(int rank = 1, const std::string& input = "4, 5") {
  StageTrace trace(rank);
  for (int step = 3; step < 6; ++step) {
    trace.Step(step);
    for (int k = 0; k < 2; ++k) trace.Receive(k, 100 + 100 * k, input);
    trace.Forward(150, 80);
    trace.Forward(240, 80);
    for (const int begin : {330, 460}) {
      // The input's gradient is sent before the last parameter's is there.
      trace.Backward(begin, {{40, "20"}, {30, input}});
      trace.Send(begin + 75, 900, input);
      trace.Backward(begin + 80, {{20, "6"}});
      for (int i = 0; begin == 460 && i < 2; ++i)
        trace.Add("torch.distributed.ddp.reducer::copy_bucket_to_grad", 600 + 10 * i, 5);
    }
    trace.Add("Optimizer.step#SGD.step", 850, 40);
  }
  return trace.Text();
}

absl::StatusOr<PyTorchJob> Import(const std::vector<std::string>& texts,
                                  const std::string& group = "",
                                  std::optional<double> step_seconds = std::nullopt) {
  std::deque<TextSource> sources;
  std::vector<RankTrace> traces;
  for (size_t i = 0; i < texts.size(); ++i)
    traces.push_back(
        {.recording = &sources.emplace_back(texts[i]), .name = absl::StrCat("t", i, ".json")});
  return ImportPyTorchJob(traces,
                          {.recording = {.model = "toy",
                                         .batch_size = 8,
                                         .platform = {.bandwidth_bytes_per_second = 1e9}},
                           .step_seconds = step_seconds,
                           .data_parallel_group = group},
                          {}, NeverStop);
}

TEST(PipelineRanksTest, EachStageHasTheTimesOfItsRank) {
  const absl::StatusOr<PyTorchJob> job = Import({LastStage(), FirstStage()});
  ASSERT_TRUE(job.ok()) << job.status();
  const auto& imported = std::get<ImportedProfile>(*job);
  const Profile& profile = imported.profile;
  std::vector<std::string> names;
  std::vector<int64_t> gradients;
  for (const Operation& operation : profile.operations()) {
    names.push_back(operation.name);
    if (operation.resource == Resource::kCollective) gradients.push_back(operation.size_bytes);
  }
  EXPECT_THAT(names,
              ElementsAre("forward/0", "forward/1", "backward/1/0", "gradient/1/0", "backward/1/1",
                          "backward/1/2", "gradient/1/2", "backward/0/0", "gradient/0/0",
                          "backward/0/1", "gradient/0/1", "optimizer/0", "optimizer/1"));
  // The last stage's first gradient is as large as its input, whose own is no parameter's.
  EXPECT_EQ(profile.operations()[0].output_bytes, 80);
  EXPECT_THAT(gradients.size(), 4);
  // The third step alone is left of three, which has two micro-batches.
  ASSERT_EQ(profile.steps().size(), 2);
  std::vector<int64_t> us;
  for (size_t i = 0; i < names.size(); ++i)
    us.push_back((profile.steps()[0].end_ns[i] - profile.steps()[0].start_ns[i]) / 1000);
  // The send's call is none of a backward pass's work.
  EXPECT_THAT(us, ElementsAre(35, 80, 40, 0, 30, 25, 0, 50, 0, 30, 0, 20, 40));
  EXPECT_EQ(profile.steps()[1].end_ns[0], 40'000);
  EXPECT_EQ(profile.batch_size(), 8);
  FaultList faults;
  EXPECT_EQ(MapStages(profile, "pipeline", faults).recorded_ranks, 2);
  // Asked about without its pipeline it is another job, which is said.
  const auto told = [&](const ScenarioDraft& draft) {
    std::vector<std::string> fields;
    for (const Assumption& each :
         AssumptionsOf(ResolveScenario(profile, draft, {.pipelines = true}).value()))
      fields.push_back(each.field + " " + each.value);
    return fields;
  };
  EXPECT_THAT(told({.workers = 1}), Contains("pipeline no pipeline"));
  EXPECT_THAT(told({.workers = 1, .pipeline = PipelineDraft{.stages = 2, .micro_batches = 2}}),
              Not(Contains("pipeline no pipeline")));
}

// Refused where ranks cannot be all of a replica's by their numbers, whose tensors agree.
TEST(PipelineRanksTest, NumbersOfRanksTellThoseThatAreMissingOrOfAnotherReplica) {
  const auto made = [](int first, int last, const std::string& world,
                       const std::string& more = "") {
    std::vector<std::string> texts = {FirstStage(first), LastStage(last)};
    for (std::string& text : texts)
      text = absl::StrReplaceAll(text, {{R"("world_size": 2)", absl::StrCat(world, more)}});
    return Import(texts);
  };
  const auto doubts = [](const absl::StatusOr<PyTorchJob>& job) {
    const auto& notes = std::get<ImportedProfile>(*job).notes;
    return std::count_if(notes.begin(), notes.end(), [](const std::string& note) {
      return note.starts_with("Not known: whether ranks are missing");
    });
  };
  const auto of = [](int world) { return absl::StrCat(R"("world_size": )", world); };
  constexpr char kUnknown[] = R"("backend": "gloo")";
  constexpr char kGroups[] =
      R"(, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 12},
         {"pg_name": "1", "pg_desc": "PIPELINE_MODEL_PARALLEL_GROUP", "pg_size": )";
  // Stages are next to each other, or replicas are.
  for (const auto& [first, last, world] :
       {std::tuple(0, 1, 2), std::tuple(2, 3, 4), std::tuple(0, 2, 4), std::tuple(3, 7, 8)}) {
    const absl::StatusOr<PyTorchJob> job = made(first, last, of(world));
    ASSERT_TRUE(job.ok()) << first << " " << last << " " << job.status();
    EXPECT_EQ(doubts(job), 0);
  }
  // Devices of a tensor group may lie between them, or other stages.
  EXPECT_EQ(doubts(made(0, 2, of(12))), 1);
  EXPECT_EQ(doubts(made(0, 2, kUnknown)), 1);
  EXPECT_EQ(doubts(made(0, 1, kUnknown)), 0);
  EXPECT_EQ(doubts(made(0, 2, of(12), absl::StrCat(kGroups, "2}]"))), 0);
  const auto refusal = [](const absl::StatusOr<PyTorchJob>& job) {
    EXPECT_FALSE(job.ok());
    return DetailsOf(job.status()).faults.front().description;
  };
  for (const auto& [first, last, world] :
       {std::tuple(0, 2, 3), std::tuple(0, 3, 4), std::tuple(1, 2, 4), std::tuple(2, 4, 8),
        std::tuple(0, 5, 8), std::tuple(4, 5, 4)})
    EXPECT_THAT(refusal(made(first, last, of(world))),
                HasSubstr(absl::StrCat("rank ", last, " cannot follow rank ", first)));
  EXPECT_THAT(refusal(made(0, 2, of(12), absl::StrCat(kGroups, "3}]"))),
              HasSubstr("a pipeline's process group of 3 ranks, and 2 are given"));
  EXPECT_THAT(refusal(Import({FirstStage(), absl::StrReplaceAll(LastStage(), {{of(2), of(4)}})})),
              HasSubstr("rank 1 is of a job of 4 ranks, and rank 0 of one of 2"));
}

TEST(PipelineRanksTest, TimesAreThoseOfAStepWithoutTheProfiler) {
  const absl::StatusOr<PyTorchJob> job = Import({FirstStage(), LastStage()}, "", 0.0005);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto& imported = std::get<ImportedProfile>(*job);
  EXPECT_EQ(imported.profile.steps()[1].end_ns[0], 20'000);
  EXPECT_THAT(imported.notes, ::testing::Contains(HasSubstr("scaled by 0.5000")));
}

TEST(PipelineRanksTest, RanksThatContradictEachOtherAreRefusedByName) {
  const auto refused = [](const absl::StatusOr<PyTorchJob>& job) {
    const ErrorDetails details = DetailsOf(job.status());
    return details.faults.empty() ? std::string(job.status().message())
                                  : absl::StrCat(details.faults.front().field, ": ",
                                                 details.faults.front().description);
  };
  const std::string first = FirstStage();
  const std::string last = LastStage();
  const auto changed = [](const std::string& text, const std::string& from, const std::string& to) {
    return absl::StrReplaceAll(text, {{from, to}});
  };
  for (const auto& [job, field, what] :
       {std::tuple<absl::StatusOr<PyTorchJob>, std::string, std::string>{
            Import({first, FirstStage(1)}), "recordings[1]",
            "rank 1 sends no gradients back, with rank 0 before it"},
        {Import({last, LastStage(0)}), "recordings[1]", "rank 0 sends gradients back"},
        {Import({first, last, FirstStage(2), LastStage(3)}), "recordings[1]",
         "rank 1 sends no activations on, with rank 2 behind it"},
        {Import({first}), "recordings[0]", "rank 0 sends activations on, with no rank behind it"},
        {Import({first, LastStage(1, "4, 6")}), "recordings[0]",
         "rank 0 receives 2 of 80 bytes a step, and its neighbours send it 2 of 96 bytes"},
        {Import({first, LastStage(0)}), "recordings[1]", "its rank is another's, too"},
        {Import({first, changed(last, "DistributedDataParallel.forward", "forward")}),
         "recordings[1]", "ProfilerStep#5 has no DistributedDataParallel.forward"},
        {Import({first, changed(last, "ProfilerStep#5", "ProfilerStep#9")}), "recordings[0]",
         "no step that all other ranks have"},
        {Import({first, last}, "dp"), "data_parallel_group", "\"dp\""}}) {
    EXPECT_THAT(refused(job), HasSubstr(absl::StrCat(field, ": "))) << what;
    EXPECT_THAT(refused(job), HasSubstr(what));
  }
}

}  // namespace
}  // namespace stepcast::pipeline_ranks_test
