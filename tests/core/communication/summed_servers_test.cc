// Servers that add up what all workers upload: when the sums are sent, in parts, of profiles of
// servers and of all-reduces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/time.h"
#include "core/communication/all_reduce.h"
#include "core/communication/job.h"
#include "core/communication/parameter_servers.h"
#include "core/communication/server_step.h"
#include "core/communication/server_transfers.h"
#include "core/engine/simulation.h"
#include "core/model/made_steps.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::summed_servers_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::JobBuilder;
using testing::Resolved;

ScenarioDraft Summed(int32_t workers, ParameterServersDraft how = {}) {
  how.synchronization = Synchronization::kSummed;
  return {.workers = workers, .communication = std::move(how)};
}

struct Ran {
  RunResult result;
  std::vector<ChunkRecord> chunks;

  // Of the chunk, in nanoseconds.
  std::pair<int64_t, int64_t> Times(int32_t worker, OpIndex op, int32_t step = 0) const {
    for (const ChunkRecord& chunk : chunks) {
      if (chunk.worker == worker && chunk.op == op && chunk.step == step)
        return {ToNanoseconds(chunk.start - Instant{}), ToNanoseconds(chunk.end - Instant{})};
    }
    return {-1, -1};
  }
};

Ran RunOf(const Profile& profile, const Scenario& scenario, int32_t steps) {
  EXPECT_TRUE(CheckCollectives(profile, scenario).ok());
  const JobProgram job = BuildJobProgram(profile, scenario, NeverStop).value();
  testing::KeptTrace trace;
  RunOptions options = testing::OptionsFor(scenario, steps);
  options.trace = &trace;
  return {.result =
              Simulate(JobOf(job, std::make_shared<const Ranking>(), scenario), options, NeverStop)
                  .value(),
          .chunks = trace.records};
}
Ran RunOf(const Profile& profile, const ScenarioDraft& draft, int32_t steps) {
  return RunOf(profile, Resolved(profile, draft), steps);
}

// Forward, backward of layer 2 and of layer 1; each gradient goes to the server and comes back as
// the sum, which the worker applies. At 1e9 bytes a second a byte takes a nanosecond.
struct Aggregated {
  int32_t forward, backward2, push2, pull2, update2, backward1, push1, pull1, update1;
  Profile profile;

  static Aggregated Make() {
    JobBuilder job;
    const int32_t forward = job.Compute(400);
    const int32_t backward2 = job.Compute(800, {forward});
    const int32_t push2 = job.Upload(100, {backward2}, 0, "w2");
    const int32_t pull2 = job.Download(100, {push2}, 0, "w2");
    const int32_t update2 = job.Compute(100, {pull2});
    const int32_t backward1 = job.Compute(400, {backward2});
    const int32_t push1 = job.Upload(100, {backward1}, 0, "w1");
    const int32_t pull1 = job.Download(100, {push1}, 0, "w1");
    const int32_t update1 = job.Compute(100, {pull1});
    return {forward,   backward2, push2, pull2,   update2,
            backward1, push1,     pull1, update1, job.Build()};
  }
};

// The fast worker may not download w2 at 1.3 us when the slow one uploads g2 at 2.4 us.
TEST(SummedServersTest, ADownloadWaitsForTheSlowestUploadOfItsTensorAndOverlapsTheBackwardPass) {
  const Aggregated job = Aggregated::Make();
  ScenarioDraft draft = Summed(2);
  draft.worker_groups = {{.count = 1, .compute_speed_factor = 1},
                         {.count = 1, .compute_speed_factor = 0.5}};
  const Ran ran = RunOf(job.profile, draft, 2);
  EXPECT_EQ(ran.Times(0, job.push2), std::pair(int64_t{1200}, int64_t{1300}));
  EXPECT_EQ(ran.Times(1, job.push2), std::pair(int64_t{2400}, int64_t{2500}));
  // Both at once, while the slow one computes backward until 3.2 us.
  EXPECT_EQ(ran.Times(0, job.pull2), std::pair(int64_t{2500}, int64_t{2700}));
  EXPECT_EQ(ran.Times(1, job.pull2), std::pair(int64_t{2500}, int64_t{2700}));
  EXPECT_EQ(ran.Times(1, job.backward1), std::pair(int64_t{2400}, int64_t{3200}));
  EXPECT_EQ(ran.Times(0, job.update2), std::pair(int64_t{2700}, int64_t{2800}));
  EXPECT_EQ(ran.Times(0, job.pull1), std::pair(int64_t{3300}, int64_t{3500}));
  EXPECT_EQ(ran.Times(0, job.update1), std::pair(int64_t{3500}, int64_t{3600}));
  // Its next step does not wait for the other's end.
  EXPECT_EQ(ran.Times(0, job.forward, 1).first, 3600);
  draft.servers().synchronization = Synchronization::kAsynchronous;
  EXPECT_EQ(RunOf(job.profile, draft, 2).Times(0, job.pull2).first, 1300);
  draft.servers().synchronization = Synchronization::kSynchronous;
  EXPECT_EQ(RunOf(job.profile, draft, 2).Times(0, job.pull2).first, 1300);
}

// Where the server updates, the parameter of the next step waits for the gradients of this one.
TEST(SummedServersTest, WhatIsDownloadedAtTheBeginOfAStepWaitsForTheSumOfTheLastOne) {
  JobBuilder job;
  const int32_t pull1 = job.Download(100, {}, 0, "w1");
  const int32_t pull2 = job.Download(100, {}, 0, "w2");
  const int32_t forward = job.Compute(400, {pull1, pull2});
  const int32_t push2 = job.Upload(100, {job.Compute(800, {forward})}, 0, "w2");
  const int32_t update2 = job.Update(50, {push2}, 0, "w2");
  const int32_t push1 = job.Upload(100, {job.Compute(400, {push2 - 1})}, 0, "w1");
  const int32_t update1 = job.Update(50, {push1}, 0, "w1");
  const Profile profile = job.Build();
  ScenarioDraft draft = Summed(2);
  draft.worker_groups = {{.count = 1, .compute_speed_factor = 1},
                         {.count = 1, .compute_speed_factor = 0.25}};
  const Ran ran = RunOf(profile, draft, 2);
  // Both have both parameters at 400; the slow one is through its forward at 2000.
  EXPECT_EQ(ran.Times(0, update1), std::pair(int64_t{2100}, int64_t{2150}));
  EXPECT_EQ(ran.Times(1, push2), std::pair(int64_t{5200}, int64_t{5300}));
  EXPECT_EQ(ran.Times(1, update2), std::pair(int64_t{5300}, int64_t{5350}));
  EXPECT_EQ(ran.Times(0, pull2, 1), std::pair(int64_t{5350}, int64_t{5450}));
  EXPECT_EQ(ran.Times(1, update1), std::pair(int64_t{6900}, int64_t{6950}));
  EXPECT_EQ(ran.Times(0, pull1, 1).first, 6950);
}

// The last upload of a step is of the layer that the next one needs first: its sum is there when
// the next step begins, and goes before the large download behind it.
TEST(SummedServersTest, TheSumOfTheLastUploadIsThereWhenTheNextStepBegins) {
  JobBuilder job;
  const int32_t pull0 = job.Download(100, {}, 0, "w0");
  const int32_t pull1 = job.Download(40'000, {}, 0, "w1");
  const int32_t forward1 = job.Compute(10'000, {job.Compute(50'000, {pull0}), pull1});
  const int32_t backward1 = job.Compute(10'000, {forward1});
  job.Upload(40'000, {backward1}, 0, "w1");
  job.Upload(100, {job.Compute(90'000, {backward1})}, 0, "w0");
  const Profile profile = job.Build();
  const Ran summed = RunOf(profile, Summed(2), 4);
  ParameterServersDraft synchronous;
  synchronous.synchronization = Synchronization::kSynchronous;
  EXPECT_EQ(summed.result.step_ends,
            RunOf(profile, {.workers = 2, .communication = synchronous}, 4).result.step_ends);
  EXPECT_EQ(summed.Times(0, pull1, 1).first, summed.Times(0, pull0, 1).second);
}

TEST(SummedServersTest, OneWorkerRunsAsItDoesAlone) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomCase random_case = testing::MakeSummedCase(seed);
    random_case.scenario.workers = 1;
    random_case.scenario.worker_groups.clear();
    random_case.scenario.start_offsets_ns.clear();
    const auto ends = [&](Synchronization how) {
      random_case.scenario.servers().synchronization = how;
      return Simulate(testing::EngineJob(random_case), testing::EngineOptions(random_case, seed),
                      NeverStop)
          .value()
          .step_ends;
    };
    ASSERT_EQ(ends(Synchronization::kSummed), ends(Synchronization::kAsynchronous));
  }
}

// A layered network with all-reduces, or whose gradients go to the server and come back.
struct Layer {
  int64_t forward_ns = 0;
  int64_t backward_ns = 0;
  int64_t bytes = 0;
};
std::vector<Layer> RandomLayers(Random& random) {
  std::vector<Layer> layers(1 + random.Below(8));
  for (Layer& layer : layers) {
    layer = {.forward_ns = static_cast<int64_t>(1 + random.Below(1'000'003)),
             .backward_ns = static_cast<int64_t>(1 + random.Below(1'000'003)),
             .bytes = static_cast<int64_t>(1 + random.Below(2'000'003))};
  }
  return layers;
}

// The step of workers that are alike, of layers whose sums come back while the backward pass goes
// on: no gradient is sent before it is made and the one before has been sent by all, none comes
// back before it and the one before has, and W workers share the link.
TEST(SummedServersTest, WorkersThatAreAlikeTakeTheTimeOfTheClosedForm) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 41});
    const std::vector<Layer> layers = RandomLayers(random);
    const auto workers = static_cast<int32_t>(1 + random.Below(6));
    JobBuilder job;
    int32_t last = -1;
    int64_t made = 0;
    for (const Layer& layer : layers) {
      last =
          job.Compute(layer.forward_ns, last < 0 ? JobBuilder::Waits{} : JobBuilder::Waits{last});
      made += layer.forward_ns;
    }
    int64_t sent = 0;
    int64_t back = 0;
    for (size_t i = layers.size(); i > 0; --i) {
      const Layer& layer = layers[i - 1];
      last = job.Compute(layer.backward_ns, {last});
      const std::string name = std::to_string(i);
      job.Download(layer.bytes, {job.Upload(layer.bytes, {last}, 0, name)}, 0, name);
      made += layer.backward_ns;
      sent = std::max(made, sent) + workers * layer.bytes;
      back = std::max(sent, back) + workers * layer.bytes;
    }
    const Ran ran = RunOf(job.Build(), Summed(workers), 3);
    for (const std::vector<Instant>& ends : ran.result.step_ends) {
      for (size_t step = 0; step < ends.size(); ++step)
        ASSERT_EQ(ToNanoseconds(ends[step] - Instant{}), static_cast<int64_t>(step + 1) * back);
    }
  }
}

Profile AllReduced(const std::vector<Layer>& layers, int64_t optimizer_ns) {
  std::vector<TrainingLayer> training;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string name = std::to_string(i);
    training.push_back({.name = name,
                        .parameters = {{.name = "w" + name, .size_bytes = layers[i].bytes}},
                        .forward_ns = layers[i].forward_ns,
                        .backward_ns = layers[i].backward_ns});
    if (i > 0) training.back().inputs = {static_cast<int32_t>(i) - 1};
  }
  const TrainingGraph graph = BuildAllReduceGraph(training, optimizer_ns);
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = graph.operations;
  RecordedStep& step = draft.steps.emplace_back();
  for (size_t i = 0; i < draft.operations.size(); ++i) {
    const bool computes = draft.operations[i].resource == Resource::kWorker;
    step.start_ns.push_back(0);
    step.end_ns.push_back(computes ? graph.durations_ns[i] : 0);
  }
  return Profile::Create(std::move(draft)).value();
}

// Of all-reduced gradients: from the backward pass of one step to the end of the forward pass of
// the next one, whose layers wait for their own sums only.
TEST(SummedServersTest, TheForwardPassOfALayerWaitsForItsOwnSumOnly) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 43});
    const std::vector<Layer> layers = RandomLayers(random);
    const auto workers = static_cast<int32_t>(1 + random.Below(5));
    std::vector<int64_t> summed(layers.size());
    int64_t made = 0;
    int64_t sent = 0;
    int64_t back = 0;
    for (size_t i = layers.size(); i > 0; --i) {
      made += layers[i - 1].backward_ns;
      sent = std::max(made, sent) + workers * layers[i - 1].bytes;
      back = std::max(sent, back) + workers * layers[i - 1].bytes;
      summed[i - 1] = back;
    }
    int64_t end = made;
    for (size_t i = 0; i < layers.size(); ++i)
      end = std::max(end, summed[i]) + layers[i].forward_ns;
    const Ran ran = RunOf(AllReduced(layers, 0), Summed(workers, {.servers = 1}), 3);
    for (const std::vector<Instant>& ends : ran.result.step_ends) {
      for (size_t step = 0; step < ends.size(); ++step)
        ASSERT_EQ(ToNanoseconds(ends[step] - Instant{}), static_cast<int64_t>(step + 1) * end);
    }
  }
}

// The same job written out with uploads and downloads, of unlike workers on links of every kind.
TEST(SummedServersTest, AJobOfAllReducesIsTheJobOfServersThatItMeans) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 47});
    const std::vector<Layer> layers = RandomLayers(random);
    JobBuilder job;
    std::vector<int32_t> summed(layers.size());
    int32_t last = -1;
    for (size_t i = layers.size(); i > 0; --i) {
      last = job.Compute(layers[i - 1].backward_ns,
                         last < 0 ? JobBuilder::Waits{} : JobBuilder::Waits{last});
      const std::string name = std::to_string(i);
      const int32_t upload = job.Upload(layers[i - 1].bytes, {last}, 0, name);
      summed[i - 1] = job.Download(layers[i - 1].bytes, {upload}, 0, name);
    }
    std::vector<int32_t> updated(layers.size());
    for (size_t i = layers.size(); i > 0; --i) updated[i - 1] = job.Compute(0, {summed[i - 1]});
    for (size_t i = 0; i < layers.size(); ++i)
      last = job.Compute(layers[i].forward_ns, {last, summed[i], updated[i]});
    ParameterServersDraft how{.servers = 1};
    if (random.Below(2) == 0)
      how.parsing_overhead = ParsingOverhead{.seconds_per_byte = 1.3e-10, .seconds = 1.7e-6};
    if (random.Below(2) == 0) how.multiplexing = WindowDraft{.bytes = 300'000};
    if (random.Below(3) == 0) how.link_sharing = FirstCome{};
    if (random.Below(3) == 0) how.link_sharing = TurnsDraft{.bytes = 70'000};
    if (random.Below(2) == 0) how.partition_bytes = 400'000;
    ScenarioDraft draft = Summed(static_cast<int32_t>(2 + random.Below(4)), how);
    for (int32_t left = *draft.workers; left > 0; --left)
      draft.worker_groups.push_back({.count = 1, .compute_speed_factor = 0.3 + random.Unit()});
    ASSERT_EQ(RunOf(AllReduced(layers, 0), draft, 4).result.step_ends,
              RunOf(job.Build(), draft, 4).result.step_ends);
  }
}

// The same job once more, written as a profile of servers by the code, on one to three servers.
TEST(ServerProfileTest, HasTheProgramThatTheAllReducesHaveOnServers) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 53});
    const std::vector<Layer> layers = RandomLayers(random);
    const Profile reduced = AllReduced(layers, static_cast<int64_t>(random.Below(2) * 700));
    ParameterServersDraft how{.servers = static_cast<int32_t>(1 + random.Below(3))};
    how.synchronization = std::vector{Synchronization::kSummed, Synchronization::kAsynchronous,
                                      Synchronization::kSynchronous}[random.Below(3)];
    if (random.Below(2) == 0)
      how.parsing_overhead = ParsingOverhead{.seconds_per_byte = 1.3e-10, .seconds = 1.7e-6};
    if (random.Below(2) == 0) how.multiplexing = WindowDraft{.bytes = 300'000};
    // Parts are placed beside what is whole: on one server there is nothing to choose.
    if (how.servers == 1 && random.Below(2) == 0) how.partition_bytes = 400'000;
    ScenarioDraft draft{.workers = static_cast<int32_t>(1 + random.Below(4)), .communication = how};
    for (int32_t left = *draft.workers; left > 0; --left)
      draft.worker_groups.push_back({.count = 1, .compute_speed_factor = 0.3 + random.Unit()});
    const Scenario scenario = Resolved(reduced, draft);
    const absl::StatusOr<ServerProfile> written = ServerProfileOf(reduced, scenario, NeverStop);
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_FALSE(written->profile.has_collectives());
    EXPECT_EQ(written->sources.size(), written->profile.operations().size());
    const Program asked = BuildProgram(reduced, scenario);
    const Program made = BuildProgram(written->profile, written->scenario);
    ASSERT_EQ(made.size(), asked.size());
    ASSERT_EQ(made.gatherings().size(), asked.gatherings().size());
    // The parts of an upload stand together, not each beside the download of its sum.
    for (OpIndex op = 0; op < asked.size() && how.partition_bytes.value_or(0) == 0; ++op) {
      ASSERT_EQ(made.lane(op), asked.lane(op)) << op;
      ASSERT_EQ(made.duration(0, op), asked.duration(0, op)) << op;
    }
    ASSERT_EQ(RunOf(written->profile, written->scenario, 4).result.step_ends,
              RunOf(reduced, scenario, 4).result.step_ends);
  }
}

// Names of the profile stay; new operations get others, within the limit of names.
TEST(ServerProfileTest, NamesOfTheProfileStay) {
  Random random({1, 59});
  ProfileDraft draft = AllReduced(RandomLayers(random), 700).content();
  std::vector<std::string> names;
  Operation* gradient = nullptr;
  for (Operation& operation : draft.operations) {
    if (operation.resource != Resource::kCollective) continue;
    operation.parameter = operation.name;
    gradient = &operation;
  }
  ASSERT_NE(gradient, nullptr);
  gradient->name = std::string(512, 'g');
  draft.operations.front().name = "pull/" + std::string(480, 'g');
  for (const Operation& operation : draft.operations) names.push_back(operation.name);
  const Profile profile = Profile::Create(std::move(draft)).value();
  for (const Synchronization meeting : {Synchronization::kSummed, Synchronization::kSynchronous}) {
    ParameterServersDraft how{.servers = 1};
    how.synchronization = meeting;
    const Scenario scenario = Resolved(profile, {.workers = 2, .communication = how});
    const absl::StatusOr<ServerProfile> written = ServerProfileOf(profile, scenario, NeverStop);
    ASSERT_TRUE(written.ok()) << written.status();
    for (size_t i = 0; i < names.size(); ++i) {
      // An optimizer of all gradients becomes an update of each, of which the first has its name.
      const auto& made = written->profile.operations();
      const auto found = std::find_if(made.begin(), made.end(), [&](const Operation& operation) {
        return operation.name == names[i];
      });
      ASSERT_NE(found, made.end()) << names[i];
      EXPECT_EQ(written->sources[static_cast<size_t>(found - made.begin())],
                static_cast<int32_t>(i));
    }
  }
}

// The update of each gradient follows its download, on the worker.
TEST(SummedServersTest, TheOptimizerOfAllGradientsBecomesAnUpdateOfEach) {
  const std::vector<Layer> layers = {{.forward_ns = 1000, .backward_ns = 500, .bytes = 100},
                                     {.forward_ns = 1000, .backward_ns = 500, .bytes = 300}};
  const Ran ran = RunOf(AllReduced(layers, 400), Summed(1, {.servers = 1}), 1);
  // w1 at 500, 800 and 1100; w0 at 1000, 1100 and 1200: 100 of 400 bytes, 100 of 400 ns.
  EXPECT_EQ(ToNanoseconds(ran.result.step_ends[0].front() - Instant{}), 1400 + 100 + 2000);
}

// Cut by hand, each part a parameter of its own.
TEST(SummedServersTest, PartsAreSummedAndDownloadedByThemselves) {
  JobBuilder whole;
  const int32_t forward = whole.Compute(1000);
  const int32_t up = whole.Upload(250, {forward}, 0, "w");
  const int32_t sum = whole.Update(50, {up}, 0, "w");
  const int32_t down = whole.Download(250, {sum}, 0, "w");
  whole.Compute(10, {down});
  JobBuilder cut;
  cut.Compute(1000);
  JobBuilder::Waits downs;
  const int64_t bytes[] = {100, 100, 50};
  const int64_t sums[] = {20, 20, 10};
  for (int part = 0; part < 3; ++part) {
    const std::string name = "w" + std::to_string(part);
    const int32_t own = cut.Update(sums[part], {cut.Upload(bytes[part], {0}, 0, name)}, 0, name);
    downs.push_back(cut.Download(bytes[part], {own}, 0, name));
  }
  cut.Compute(10, downs);
  ScenarioDraft draft = Summed(3);
  draft.worker_groups = {{.count = 2, .compute_speed_factor = 1},
                         {.count = 1, .compute_speed_factor = 0.7}};
  const std::vector<std::vector<Instant>> by_hand = RunOf(cut.Build(), draft, 4).result.step_ends;
  draft.servers().partition_bytes = 100;
  const Profile profile = whole.Build();
  EXPECT_EQ(RunOf(profile, draft, 4).result.step_ends, by_hand);
  const Program program = BuildProgram(profile, Resolved(profile, draft));
  ASSERT_EQ(program.gatherings().size(), 3U);
  EXPECT_EQ(program.gatherings()[1].befores.size(), 1U);
  draft.servers().partition_bytes = 250;
  EXPECT_EQ(BuildProgram(profile, Resolved(profile, draft)).size(), 5);
}

TEST(SummedServersTest, PartsGoToTheServerWithTheFewestBytes) {
  JobBuilder job;
  job.Download(1000, {}, 1, "whole");
  job.Download(2500, {}, 0, "cut");
  job.Upload(2500, {}, 0, "cut");
  const Profile profile = job.Build();
  const Placement placed(profile, 2, 1200);
  ASSERT_EQ(placed.PartsOf(1), 3);
  EXPECT_EQ(placed.PartsOf(0), 1);
  EXPECT_EQ(placed.ServerOf(0, 0), 1);
  // 1200 beside nothing, 1200 beside 1000, 100 beside 1200.
  EXPECT_EQ(placed.ServerOf(1, 0), 0);
  EXPECT_EQ(placed.ServerOf(1, 1), 1);
  EXPECT_EQ(placed.ServerOf(2, 2), 0);
  EXPECT_EQ(placed.BeginOf(2, 2500), 2400);
  EXPECT_EQ(placed.BeginOf(3, 2500), 2500);
}

std::vector<SummedDownload> SumsIn(const Profile& profile) {
  return SumsOf(profile, NeverStop).value();
}

TEST(SummingTest, ADownloadIsOfWhatItWaitsForElseOfTheLastStep) {
  JobBuilder job;
  const int32_t at_begin = job.Download(10, {}, 0, "a");
  const int32_t computation = job.Compute(5, {at_begin});
  const int32_t upload_a = job.Upload(10, {computation}, 0, "a");
  const int32_t update_a = job.Update(3, {upload_a}, 0, "a");
  const int32_t upload_b = job.Upload(10, {computation}, 0, "b");
  const int32_t between = job.Compute(1, {upload_b});
  const int32_t after = job.Download(10, {between}, 0, "b");
  const int32_t unnamed = job.Upload(10, {computation});
  const int32_t of_unnamed = job.Download(10, {unnamed});
  job.Download(10, {computation}, 0, "constant");
  EXPECT_THAT(SumsIn(job.Build()), ElementsAre(SummedDownload{at_begin, {update_a}, true},
                                               SummedDownload{after, {upload_b}, false},
                                               SummedDownload{of_unnamed, {unnamed}, false}));
}

TEST(SummingTest, WhatNamesNoParameterAndIsWaitedForByNoDownloadIsRefused) {
  JobBuilder job;
  const int32_t download = job.Download(10, {}, 0, "a");
  job.Upload(10, {job.Compute(5, {download})});
  const Profile profile = job.Build();
  const absl::Status status = CheckCollectives(profile, Resolved(profile, Summed(2)));
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(DetailsOf(status).faults.size(), 1U);
  EXPECT_EQ(DetailsOf(status).faults[0].field, "parameter_servers.synchronization");
  EXPECT_THAT(DetailsOf(status).faults[0].description,
              HasSubstr("operations[2] of the profile, \"op2\", names no parameter"));
}

TEST(SummedServersTest, PartsThatWaitForTooManyOthersAreRefused) {
  JobBuilder job;
  const int32_t first = job.Download(10'000, {}, 0, "a");
  job.Download(10'000, {first}, 0, "b");
  const Profile profile = job.Build();
  ScenarioDraft draft;
  draft.servers().partition_bytes = 1;
  const absl::Status status = CheckCollectives(profile, Resolved(profile, draft));
  ASSERT_EQ(DetailsOf(status).faults.size(), 1U);
  EXPECT_EQ(DetailsOf(status).faults[0].field, "parameter_servers.partition_bytes");
  draft.servers().partition_bytes = 0;
  const absl::Status zero = ResolveScenario(profile, draft).status();
  ASSERT_EQ(DetailsOf(zero).faults.size(), 1U);
  EXPECT_EQ(DetailsOf(zero).faults[0].field, "parameter_servers.partition_bytes");
}

}  // namespace
}  // namespace stepcast::summed_servers_test
