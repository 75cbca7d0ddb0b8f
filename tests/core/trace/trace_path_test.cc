// The critical path in a trace: of simulated jobs of every kind, and of recordings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/diagnose/diagnosis.h"
#include "core/trace/trace.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"
#include "tests/core/importing/rank_traces.h"

namespace stepcast::trace_path_test {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

int64_t Picoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e6);
}
int64_t BeginOf(const Json& event) { return Picoseconds(event["ts"]); }
int64_t EndOf(const Json& event) { return BeginOf(event) + Picoseconds(event["dur"]); }

// A trace with its critical path, sorted by what events are.
class PathTrace {
 public:
  PathTrace(const Profile& profile, TraceQuery query) {
    query.critical_path = true;
    std::string text;
    const auto take = [&text](const std::string& piece) {
      text += piece;
      return absl::OkStatus();
    };
    const absl::StatusOr<TraceSummary> summary = WriteTrace(profile, query, take, NeverStop);
    EXPECT_TRUE(summary.ok()) << summary.status();
    if (!summary.ok()) return;
    const Json events = Json::parse(text)["traceEvents"];
    EXPECT_EQ(static_cast<int64_t>(events.size()), summary->events);
    for (const Json& event : events) {
      const std::string phase = event["ph"];
      if (event["pid"] == query.scenario.workers + 1) {
        if (phase == "X") segments_.push_back(event);
        if (event["name"] == "process_name") process_ = event["args"]["name"];
      } else if (phase == "X" && event["cat"] != "step") {
        chunks_.push_back(event);
        end_ = std::max(end_, EndOf(event));
      } else if (phase != "M" && phase != "X") {
        arrows_.push_back(event);
      }
    }
  }

  // The segments follow each other without a hole from the first instant to the last end.
  void ExpectWhole() const {
    EXPECT_EQ(process_, "critical path");
    ASSERT_FALSE(segments_.empty());
    int64_t at = 0;
    int64_t sum = 0;
    for (const Json& segment : segments_) {
      EXPECT_EQ(BeginOf(segment), at);
      at = EndOf(segment);
      sum += at - BeginOf(segment);
    }
    EXPECT_EQ(at, end_);
    EXPECT_EQ(sum, end_);
  }

  // Each segment that is work lies in the event of a worker whose work it is.
  void ExpectOfTheWorkersEvents() const {
    for (const Json& segment : segments_) {
      const Json& args = segment["args"];
      const std::string kind = args["kind"];
      EXPECT_EQ(args.contains("operation"), kind != "GAP");
      EXPECT_EQ(segment["name"] == "gap", kind == "GAP");
      if (kind == "GAP") continue;
      const bool is_there = std::any_of(chunks_.begin(), chunks_.end(), [&](const Json& chunk) {
        return chunk["name"] == args["operation"] && chunk["args"]["step"] == args["step"] &&
               BeginOf(chunk) <= BeginOf(segment) && EndOf(segment) <= EndOf(chunk) &&
               args.contains("worker") != (chunk["cat"] == "collective") &&
               (!args.contains("worker") || chunk["pid"] == args["worker"].get<int>() + 1);
      });
      EXPECT_TRUE(is_there) << segment;
    }
  }

  // One flow, forward in time, each of whose points lies in an event of its thread.
  void ExpectArrows() const {
    for (size_t i = 0; i < arrows_.size(); ++i) {
      const Json& arrow = arrows_[i];
      EXPECT_EQ(arrow["ph"], i == 0 ? "s" : i + 1 == arrows_.size() ? "f" : "t");
      EXPECT_EQ(arrow.value("bp", ""), i + 1 == arrows_.size() ? "e" : "");
      EXPECT_EQ(arrow["id"], 1);
      EXPECT_GE(BeginOf(arrow), BeginOf(arrows_[i > 0 ? i - 1 : 0]));
      const bool is_there =
          std::any_of(chunks_.begin(), chunks_.end(), [&arrow](const Json& chunk) {
            return chunk["pid"] == arrow["pid"] && chunk["tid"] == arrow["tid"] &&
                   BeginOf(chunk) <= BeginOf(arrow) && BeginOf(arrow) < EndOf(chunk);
          });
      EXPECT_TRUE(is_there) << arrow;
    }
  }

  std::map<std::string, int64_t> PicosecondsByKind() const {
    std::map<std::string, int64_t> sums;
    for (const Json& segment : segments_)
      sums[segment["args"]["kind"]] += EndOf(segment) - BeginOf(segment);
    return sums;
  }

  const std::vector<Json>& segments() const { return segments_; }
  const std::vector<Json>& arrows() const { return arrows_; }

 private:
  std::string process_;
  std::vector<Json> segments_;
  std::vector<Json> chunks_;
  std::vector<Json> arrows_;
  int64_t end_ = 0;
};

// Two gradients that become ready one after the other, and the optimizer.
Profile JobOfCollectives() {
  const auto collective = [](std::string name, int32_t after) {
    return Operation{.name = std::move(name),
                     .resource = Resource::kCollective,
                     .size_bytes = 1000,
                     .waiting_for = {after},
                     .collective = Collective::kAllReduce};
  };
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "backward b", .resource = Resource::kWorker},
                      collective("b", 0),
                      {.name = "backward a", .resource = Resource::kWorker, .waiting_for = {0}},
                      collective("a", 2),
                      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = {1, 3}}};
  draft.steps = {{.start_ns = {0, 0, 0, 0, 0}, .end_ns = {500, 0, 100, 0, 50}}};
  return Profile::Create(std::move(draft)).value();
}

TraceQuery Resolved(const Profile& profile, const TraceDraft& draft) {
  const absl::StatusOr<TraceQuery> query = ResolveTrace(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  return *query;
}

TEST(TracePathTest, OfAStragglerFollowsByHand) {
  const Profile profile = JobOfCollectives();
  const TraceQuery query = Resolved(
      profile,
      {.scenario = {.workers = 2,
                    .communication = AllReduceDraft{.latency_seconds = 0},
                    .worker_groups = {{.count = 1}, {.count = 1, .compute_speed_factor = 0.5}}},
       .options = {.steps_per_worker = 1}});
  const PathTrace trace(profile, query);
  ASSERT_NO_FATAL_FAILURE(trace.ExpectWhole());
  std::vector<std::string> texts;
  for (const Json& segment : trace.segments()) {
    texts.push_back(segment["name"].get<std::string>() + " " + segment["ts"].dump() + " " +
                    segment["dur"].dump() + " " + segment["args"].dump());
  }
  // Worker 1 takes 1000 ns for the first gradient, 500 more than worker 0. Each all-reduce moves
  // 1000 bytes at 1 GB/s; the second one follows the first.
  EXPECT_THAT(
      texts,
      ElementsAre(
          R"(backward b 0 0.5 {"kind":"COMPUTATION","operation":"backward b","step":0,"worker":1})",
          R"(waiting for worker 1 0.5 0.5 {"kind":"WAITING","operation":"backward b","step":0,"worker":1})",
          R"(b 1 1 {"kind":"COMMUNICATION","operation":"b","step":0})",
          R"(a 2 1 {"kind":"COMMUNICATION","operation":"a","step":0})",
          R"(optimizer 3 0.1 {"kind":"COMPUTATION","operation":"optimizer","step":0,"worker":1})"));
  std::vector<std::string> arrows;
  for (const Json& arrow : trace.arrows())
    arrows.push_back(arrow["ph"].get<std::string>() + arrow["pid"].dump() + " " +
                     arrow["ts"].dump());
  EXPECT_THAT(arrows, ElementsAre("s2 0", "t1 1", "t2 2", "f2 3"));
}

TEST(TracePathTest, IsWholeForEveryWayToCommunicate) {
  const Profile profile = JobOfCollectives();
  const std::vector<AllReduceDraft> jobs = {
      {},
      {.fusion = Buckets{.first_bytes = 2000}},
      {.algorithm = CollectiveAlgorithm::kGloo, .concurrent_collectives = 2},
      {.partition_bytes = 600},
      {.fusion = HorovodDraft{}},
      {.sharding = Sharding::kGradients},
      {.fidelity = Fidelity::kExpanded},
  };
  for (const AllReduceDraft& job : jobs) {
    SCOPED_TRACE(&job - jobs.data());
    const PathTrace trace(profile,
                          Resolved(profile, {.scenario = {.workers = 3, .communication = job}}));
    ASSERT_NO_FATAL_FAILURE(trace.ExpectWhole());
    trace.ExpectOfTheWorkersEvents();
    trace.ExpectArrows();
    EXPECT_GT(trace.PicosecondsByKind()["COMMUNICATION"], 0);
  }
}

TEST(TracePathTest, IsWholeForRandomJobsOfParameterServers) {
  int across_workers = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const PathTrace trace(
        random_case.profile,
        {.scenario = random_case.scenario, .options = {.steps_per_worker = 3, .warmup_steps = 0}});
    ASSERT_NO_FATAL_FAILURE(trace.ExpectWhole());
    trace.ExpectOfTheWorkersEvents();
    trace.ExpectArrows();
    if (HasFailure()) return;
    const std::vector<Json>& arrows = trace.arrows();
    const bool is_across = std::any_of(arrows.begin(), arrows.end(), [&](const Json& arrow) {
      return arrow["pid"] != arrows.front()["pid"];
    });
    across_workers += is_across ? 1 : 0;
  }
  std::cout << across_workers << " of 60 paths go through several workers\n";
  EXPECT_GT(across_workers, 5);
}

TEST(TracePathTest, OfARecordingIsThatOfItsDiagnosis) {
  testing::RankTracesForm form;
  form.straggler = 2;
  form.clock_offsets_ns = {0, 3'000'000'000, -2'000'000'000};
  const Profile profile = testing::ImportRankTraces(testing::WriteRankTraces(form)).profile;
  const TraceQuery query = Resolved(profile, {.recording = true});
  EXPECT_EQ(query.scenario.workers, 3);
  EXPECT_EQ(query.options.steps_per_worker, 4);
  const PathTrace trace(profile, query);
  ASSERT_NO_FATAL_FAILURE(trace.ExpectWhole());
  trace.ExpectOfTheWorkersEvents();
  trace.ExpectArrows();
  const absl::StatusOr<Diagnosis> diagnosis = DiagnoseJob(
      profile, ResolveDiagnosis(profile, {.options = {.replications = 1}}).value(), NeverStop);
  ASSERT_TRUE(diagnosis.ok()) << diagnosis.status();
  const PathDiagnosis& path = diagnosis->recording->path;
  EXPECT_EQ(path.steps, 4);
  EXPECT_EQ(path.straggler, 2);
  std::map<std::string, int64_t> sums = trace.PicosecondsByKind();
  for (size_t kind = 0; kind < kPathKinds; ++kind) {
    EXPECT_NEAR(1e-12 * static_cast<double>(sums[NameOf(static_cast<PathKind>(kind))]),
                path.by_kind[kind] * path.steps, 1e-9)
        << NameOf(static_cast<PathKind>(kind));
  }
  EXPECT_GT(sums["WAITING"], 0);
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  return fields;
}

TEST(TracePathTest, ARecordingTakesNothingElse) {
  const Profile profile = testing::ImportRankTraces(testing::WriteRankTraces({})).profile;
  const TraceDraft draft{.scenario = {.workers = 3},
                         .options = {.steps_per_worker = 5, .seed = 2, .start = Start::kStaggered},
                         .recording = true};
  EXPECT_THAT(FieldsOf(ResolveTrace(profile, draft).status()),
              ElementsAre("scenario", "options.seed", "options.start", "options.steps_per_worker"));
  EXPECT_THAT(FieldsOf(ResolveTrace(JobOfCollectives(), {.recording = true}).status()),
              ElementsAre("recording"));
}

TEST(TracePathTest, APathIsFollowedThroughSoManyEvents) {
  const Profile profile = JobOfCollectives();
  const TraceDraft draft{.scenario = {.workers = 2}, .critical_path = true};
  const TraceLimits few{.max_path_events = 50};
  EXPECT_THAT(FieldsOf(ResolveTrace(profile, draft, few).status()), ElementsAre("critical_path"));
  TraceDraft without = draft;
  without.critical_path = false;
  EXPECT_TRUE(ResolveTrace(profile, without, few).ok());
}

TEST(TracePathTest, StopsWhenTold) {
  testing::JobBuilder builder;
  int32_t last = builder.Download(600);
  for (int i = 0; i < 50; ++i) last = builder.Compute(40, {last});
  const Profile profile = builder.Build();
  TraceQuery query = Resolved(profile, {.options = {.steps_per_worker = 500}});
  query.critical_path = true;
  const auto take = [](const std::string&) { return absl::OkStatus(); };
  int checks = 0;
  const auto count = [&checks] {
    ++checks;
    return absl::OkStatus();
  };
  ASSERT_TRUE(WriteTrace(profile, query, take, count).ok());
  ASSERT_GT(checks, 20);
  for (int last_check = 1; last_check <= checks; last_check += 1 + last_check / 4) {
    int left = last_check;
    const auto stop = [&left] {
      return --left > 0 ? absl::OkStatus() : absl::CancelledError("enough");
    };
    ASSERT_EQ(WriteTrace(profile, query, take, stop).status(), absl::CancelledError("enough"))
        << last_check << " of " << checks;
  }
}

}  // namespace
}  // namespace stepcast::trace_path_test
