#include "core/trace/trace_writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/communication/server_transfers.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::trace_writers_test {
namespace {

using ::testing::ElementsAre;
using testing::JobBuilder;
using Json = nlohmann::json;

std::string Text(int64_t picoseconds) {
  std::string json;
  AppendMicroseconds(picoseconds, json);
  return json;
}

TEST(TraceTimeTest, WholeNanosecondsAreExact) {
  for (const int64_t ns : {int64_t{0}, int64_t{1}, int64_t{999}, int64_t{86'400'000'000'000}})
    EXPECT_EQ(ToPicoseconds(Instant{} + Nanoseconds(ns)), ns * 1000);
}

TEST(TraceTimeTest, AnInstantIsRoundedToTheNearestPicosecond) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    Random random({seed});
    const auto ticks = static_cast<int64_t>(
        random.Below(static_cast<uint64_t>(kEndOfTime.ticks) >> random.Below(62)));
    // |picoseconds - ticks x 25/63| <= 1/2, in exact integers.
    const __int128 off = static_cast<__int128>(ToPicoseconds(Instant{ticks})) * 63 -
                         static_cast<__int128>(ticks) * 25;
    EXPECT_TRUE(2 * off <= 63 && 2 * off >= -63) << "seed " << seed;
  }
}

TEST(TraceTimeTest, MicrosecondsHaveNoDigitTooManyOrTooFew) {
  EXPECT_EQ(Text(0), "0");
  EXPECT_EQ(Text(1), "0.000001");
  EXPECT_EQ(Text(999'999), "0.999999");
  EXPECT_EQ(Text(1'000'000), "1");
  EXPECT_EQ(Text(12'500'000), "12.5");
  EXPECT_EQ(Text(1'000'100), "1.0001");
  EXPECT_EQ(Text(ToPicoseconds(kEndOfTime)), "1830034134296.582502");
}

std::string Escaped(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

std::string ReadBack(std::string_view text) {
  return nlohmann::json::parse(Escaped(text)).get<std::string>();
}

TEST(JsonStringTest, WhatMayNotStandInAStringIsEscaped) {
  EXPECT_EQ(Escaped(""), R"("")");
  EXPECT_EQ(Escaped("recv/conv1:0"), R"("recv/conv1:0")");
  EXPECT_EQ(Escaped("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(Escaped(std::string("\0\n\x1F\x7F", 4)), R"("\u0000\u000a\u001f\u007f")");
}

TEST(JsonStringTest, EveryCharacterComesBack) {
  std::string all;
  for (uint32_t c = 0; c < 0x80; ++c) all += static_cast<char>(c);
  // The first and last of each length, and around the surrogates.
  for (const char* text : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    all += text;
  }
  EXPECT_EQ(ReadBack(all), all);
}

TEST(JsonStringTest, WhatIsNoUtf8IsReplacedByteByByte) {
  const std::string bad = "\xEF\xBF\xBD";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\x80z", "a" + bad + "z"},        // no lead
      {"\xC0\x80", bad + bad},            // overlong
      {"\xE0\x9F\xBF", bad + bad + bad},  // overlong
      {"\xF0\x8F\xBF\xBF", bad + bad + bad + bad},
      {"\xED\xA0\x80", bad + bad + bad},            // a surrogate
      {"\xF4\x90\x80\x80", bad + bad + bad + bad},  // past the last
      {"\xF5\x80\x80\x80", bad + bad + bad + bad},
      {"\xE2\x82", bad + bad},  // cut off
      {"\xE2\x82z", bad + bad + "z"},
      {"\xFF", bad},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(ReadBack(text), expected) << ::testing::PrintToString(text);
}

TEST(JsonStringTest, AnyBytesGiveValidJson) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random({seed});
    std::string text;
    for (uint64_t left = random.Below(12); left > 0; --left) {
      // Mostly what could begin or go on a sequence.
      text +=
          static_cast<char>(random.Below(4) == 0 ? random.Below(256) : 0x80 + random.Below(128));
    }
    EXPECT_NO_THROW(ReadBack(text)) << "seed " << seed;
  }
}

std::vector<std::string> NamesOf(const JobBuilder& job) {
  const Profile profile = job.Build();
  const TraceLanes lanes(BuildProgram(profile, testing::Resolved(profile)));
  std::vector<std::string> names;
  for (const TraceLanes::Lane& lane : lanes.shown()) {
    names.push_back(lane.name);
    EXPECT_EQ(lane.thread_id, static_cast<int32_t>(names.size()));
  }
  return names;
}

TEST(TraceLanesTest, StandInTheOrderOfUse) {
  JobBuilder job;
  job.Update(1, {job.Upload(1, {job.Compute(1, {job.Download(1)})})});
  EXPECT_THAT(NamesOf(job),
              ElementsAre("steps", "downlink", "worker", "uplink", "parameter server"));
}

TEST(TraceLanesTest, SayWhichServerWhereThereAreSeveralAndLeaveOutWhatRunsNothing) {
  JobBuilder job;
  const int32_t last = job.Compute(1, {job.Download(1, {}, 0), job.Download(1, {}, 1)});
  job.Update(1, {job.Upload(1, {last}, 1)}, 1);
  EXPECT_THAT(NamesOf(job), ElementsAre("steps", "downlink of server 0", "downlink of server 1",
                                        "worker", "uplink of server 1", "parameter server 1"));
}

// The text of a run's trace, of so many steps a worker.
struct Written {
  Written(const Profile& profile, const Scenario& scenario, const JobGraph& job, RunOptions options,
          int32_t steps) {
    const auto take = [this](const std::string& piece) {
      text += piece;
      return absl::OkStatus();
    };
    const std::vector<PlannedCollective> none;
    PerfettoWriter writer({.profile = profile,
                           .scenario = scenario,
                           .graph = *job.programs.front(),
                           .collectives = none,
                           .steps_per_worker = steps},
                          take);
    writer.Begin();
    options.trace = &writer;
    options.fastest_path = EnginePath::kPlain;
    const auto run = Simulate(job, options, NeverStop);
    EXPECT_TRUE(run.ok()) << run.status();
    writer.End();
    events = writer.events();
  }

  std::string text;
  int64_t events = 0;
};

Written WriteJob(const Profile& profile, const ScenarioDraft& draft, int32_t steps) {
  const Scenario scenario = testing::Resolved(profile, draft);
  return Written(profile, scenario, testing::JobFor(profile, scenario),
                 testing::OptionsFor(scenario, steps), steps);
}

TEST(PerfettoWriterTest, AStepOfOneWorkerIsThisText) {
  JobBuilder job;
  job.Update(300, {job.Upload(500, {job.Compute(2000, {job.Download(1000)})})});
  const Written written = WriteJob(
      job.Build(),
      {.communication = ParameterServersDraft{.parsing_overhead = ParsingOverhead{.seconds = 1e-9},
                                              .multiplexing = WindowDraft{.bytes = 600}}},
      1);
  EXPECT_EQ(written.text, R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"worker 0"}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"steps"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"downlink"}},
{"ph":"M","pid":1,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},
{"ph":"M","pid":1,"tid":3,"name":"thread_name","args":{"name":"worker"}},
{"ph":"M","pid":1,"tid":3,"name":"thread_sort_index","args":{"sort_index":3}},
{"ph":"M","pid":1,"tid":4,"name":"thread_name","args":{"name":"uplink"}},
{"ph":"M","pid":1,"tid":4,"name":"thread_sort_index","args":{"sort_index":4}},
{"ph":"M","pid":1,"tid":5,"name":"thread_name","args":{"name":"parameter server"}},
{"ph":"M","pid":1,"tid":5,"name":"thread_sort_index","args":{"sort_index":5}},
{"ph":"X","pid":1,"tid":1,"cat":"step","name":"step 0","ts":0,"dur":3.802,"args":{"step":0}},
{"ph":"X","pid":1,"tid":2,"cat":"transfer","name":"op0","ts":0,"dur":0.6,"args":{"step":0,"bytes":600,"size_bytes":1000,"link_share":1,"service":0,"services":2}},
{"ph":"X","pid":1,"tid":2,"cat":"transfer","name":"op0","ts":0.6,"dur":0.4,"args":{"step":0,"bytes":400,"size_bytes":1000,"link_share":1,"service":1,"services":2}},
{"ph":"X","pid":1,"tid":3,"cat":"parsing","name":"op0 parsing","ts":1,"dur":0.001,"args":{"step":0,"size_bytes":1000}},
{"ph":"X","pid":1,"tid":3,"cat":"computation","name":"op1","ts":1.001,"dur":2,"args":{"step":0,"recorded_us":2}},
{"ph":"X","pid":1,"tid":4,"cat":"transfer","name":"op2","ts":3.001,"dur":0.5,"args":{"step":0,"bytes":500,"size_bytes":500,"link_share":1,"service":0,"services":1}},
{"ph":"X","pid":1,"tid":5,"cat":"parsing","name":"op2 parsing","ts":3.501,"dur":0.001,"args":{"step":0,"size_bytes":500}},
{"ph":"X","pid":1,"tid":5,"cat":"computation","name":"op3","ts":3.502,"dur":0.3,"args":{"step":0,"recorded_us":0.3}}
]}
)");
  EXPECT_EQ(written.events, 20);
}

TEST(PerfettoWriterTest, SharesAreOfTheServersLinkAndSpeedsAreTakenOut) {
  JobBuilder job;
  job.Compute(2000, {job.Download(900)});
  const WorkerGroup slow{
      .count = 2, .compute_speed_factor = 0.5, .bandwidth_bytes_per_second = 1e9};
  const WorkerGroup narrow{.count = 1, .bandwidth_bytes_per_second = 1e8};
  const Json trace =
      Json::parse(WriteJob(job.Build(), {.workers = 3, .worker_groups = {slow, narrow}}, 1).text);
  // The narrow link leaves 9/10 to the others, 45 % each.
  std::map<int, double> shares;
  for (const Json& event : trace["traceEvents"]) {
    if (event.value("cat", "") == "transfer") shares[event["pid"]] = event["args"]["link_share"];
    if (event.value("cat", "") != "computation") continue;
    EXPECT_EQ(event["args"]["recorded_us"], 2);
    EXPECT_EQ(event["dur"], event["pid"] == 3 ? 2 : 4);
  }
  EXPECT_NEAR(shares[1], 0.45, 1e-6);
  EXPECT_NEAR(shares[2], 0.45, 1e-6);
  EXPECT_NEAR(shares[3], 0.1, 1e-6);
}

TEST(PerfettoWriterTest, ForeignNamesAreEscaped) {
  JobBuilder job;
  job.Download(1000);
  ProfileDraft draft = job.Build().content();
  draft.operations[0].name = "a \"quoted\"\n\xC3\xA9 \\ \xFF";
  const Profile profile = Profile::Create(draft).value();
  const Json trace = Json::parse(WriteJob(profile, {}, 1).text);
  EXPECT_EQ(trace["traceEvents"].back()["name"], "a \"quoted\"\n\xC3\xA9 \\ \xEF\xBF\xBD");
}

// Traces of random jobs, against what the engine said.
class RandomTrace {
 public:
  explicit RandomTrace(uint64_t seed)
      : random_case_(testing::MakeRandomCase(seed)),
        job_(testing::EngineJob(random_case_)),
        graph_(*job_.programs.front()) {
    RunOptions options = testing::EngineOptions(random_case_, seed);
    shown_ = random_case_.steps_per_worker - 1;
    const Written written(random_case_.profile, random_case_.scenario, job_, options, shown_);
    trace_ = Json::parse(written.text);
    EXPECT_EQ(static_cast<int64_t>(trace_["traceEvents"].size()), written.events);
    options.trace = &kept_;
    options.fastest_path = EnginePath::kPlain;
    result_ = Simulate(job_, options, NeverStop).value();
  }

  void ExpectEachChunkOnce() const {
    std::multiset<std::string> expected;
    for (const ChunkRecord& chunk : kept_.records) {
      if (chunk.step < shown_) expected.insert(TextOf(chunk));
    }
    std::multiset<std::string> found;
    for (const Json& event : trace_["traceEvents"]) {
      if (event["ph"] == "X" && event["cat"] != "step") found.insert(TextOf(event));
    }
    EXPECT_EQ(found, expected);
  }

  void ExpectNoOverlap() const {
    std::map<std::pair<int, int>, std::vector<std::pair<int64_t, int64_t>>> lanes;
    for (const Json& event : trace_["traceEvents"]) {
      if (event["ph"] == "X")
        lanes[{event["pid"], event["tid"]}].emplace_back(BeginOf(event), EndOf(event));
    }
    for (auto& [lane, events] : lanes) {
      std::sort(events.begin(), events.end());
      for (size_t i = 1; i < events.size(); ++i)
        EXPECT_LE(events[i - 1].second, events[i].first)
            << "worker " << lane.first - 1 << ", thread " << lane.second;
    }
  }

  void ExpectStepsEndAsTheRunSays() const {
    std::map<std::pair<int, int>, int64_t> ends;
    for (const Json& event : trace_["traceEvents"]) {
      if (event.value("cat", "") == "step")
        ends[{event["pid"], event["args"]["step"]}] = EndOf(event);
    }
    EXPECT_EQ(ends.size(),
              static_cast<size_t>(random_case_.scenario.workers) * static_cast<size_t>(shown_));
    for (const auto& [key, end] : ends) {
      EXPECT_EQ(end, ToPicoseconds(result_.step_ends[static_cast<size_t>(key.first - 1)]
                                                    [static_cast<size_t>(key.second)]));
    }
  }

 private:
  static int64_t Picoseconds(const Json& microseconds) {
    return std::llround(microseconds.get<double>() * 1e6);
  }
  static int64_t BeginOf(const Json& event) { return Picoseconds(event["ts"]); }
  static int64_t EndOf(const Json& event) {
    return Picoseconds(event["ts"]) + Picoseconds(event["dur"]);
  }

  static std::string TextOf(const Json& event) {
    const Json& args = event["args"];
    return Join({event["pid"].dump(), args["step"].dump(), event["name"],
                 std::to_string(BeginOf(event)), std::to_string(EndOf(event)),
                 args.value("service", Json(0)).dump(),
                 args.contains("bytes") ? args["bytes"].dump() : "-"});
  }
  std::string TextOf(const ChunkRecord& chunk) const {
    const std::string& name =
        random_case_.profile.operations()[static_cast<size_t>(graph_.source(chunk.op))].name;
    const StreamServices services = StreamServices::Of(
        graph_.size_bytes(chunk.op), random_case_.scenario.servers().multiplexing);
    return Join(
        {std::to_string(chunk.worker + 1), std::to_string(chunk.step),
         graph_.IsParsing(chunk.op) ? name + " parsing" : name,
         std::to_string(ToPicoseconds(chunk.start)), std::to_string(ToPicoseconds(chunk.end)),
         std::to_string(chunk.service),
         graph_.IsTransfer(chunk.op) ? std::to_string(services.BytesOf(chunk.service)) : "-"});
  }
  static std::string Join(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += part + " | ";
    return text;
  }

  testing::RandomCase random_case_;
  JobGraph job_;
  const Program& graph_;
  int32_t shown_ = 0;
  Json trace_;
  testing::KeptTrace kept_;
  RunResult result_;
};

TEST(PerfettoWriterTest, RandomJobsAreShownAsTheyRan) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomTrace trace(seed);
    trace.ExpectEachChunkOnce();
    trace.ExpectNoOverlap();
    trace.ExpectStepsEndAsTheRunSays();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace stepcast::trace_writers_test
