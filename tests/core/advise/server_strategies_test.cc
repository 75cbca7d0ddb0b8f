// Strategies for jobs with parameter servers: what they make of a job, beside the same job written
// from its layers, and what the search finds, beside every grouping and BytePS's parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/advise/method_trials.h"
#include "core/advise/optimize_job.h"
#include "core/base/error.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"
#include "tests/support/repetitions.h"

namespace stepcast::server_strategies_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tensor: the layers whose forward waits for it, and whose backward makes its gradient.
struct Tensor {
  std::string parameter;
  int64_t bytes = 0;
  std::set<int32_t> layers;
  std::vector<int64_t> update_ns;  // by recorded step
  int32_t server = 0;
};

// Layers that follow each other, forward and then backward.
struct LayeredJob {
  std::vector<std::vector<int64_t>> forward_ns;   // by recorded step and layer
  std::vector<std::vector<int64_t>> backward_ns;  // likewise
  std::vector<Tensor> tensors;                    // from the first layer on
  int32_t servers = 1;
};

// Downloads, from the first layer on; forward; backward, each with the uploads of what is ready,
// from the last tensor on; and the updates behind them.
Profile ProfileOf(const LayeredJob& job) {
  ProfileDraft draft{.batch_size = 10,
                     .platform = {.bandwidth_bytes_per_second = 1e9},
                     .parameter_servers = job.servers};
  const auto layers = static_cast<int32_t>(job.forward_ns.front().size());
  const size_t steps = job.forward_ns.size();
  std::vector<std::vector<int64_t>> lengths(steps);
  const auto add = [&](Operation operation, const auto& length_of) {
    for (size_t s = 0; s < steps; ++s) lengths[s].push_back(length_of(s));
    draft.operations.push_back(std::move(operation));
    return static_cast<int32_t>(draft.operations.size()) - 1;
  };
  const auto none = [](size_t) { return int64_t{10}; };
  std::vector<int32_t> downloads;
  for (const Tensor& tensor : job.tensors) {
    downloads.push_back(add({.name = absl::StrCat("recv/", tensor.parameter),
                             .resource = Resource::kDownlink,
                             .parameter_server = tensor.server,
                             .size_bytes = tensor.bytes,
                             .parameter = tensor.parameter},
                            none));
  }
  int32_t before = -1;
  for (int32_t layer = 0; layer < layers; ++layer) {
    Operation operation{.name = absl::StrCat("forward/", layer), .resource = Resource::kWorker};
    if (before >= 0) operation.waiting_for.push_back(before);
    for (size_t t = 0; t < job.tensors.size(); ++t) {
      if (job.tensors[t].layers.contains(layer)) operation.waiting_for.push_back(downloads[t]);
    }
    std::sort(operation.waiting_for.begin(), operation.waiting_for.end());
    before = add(std::move(operation), [&](size_t s) { return job.forward_ns[s][Index(layer)]; });
  }
  for (int32_t layer = layers - 1; layer >= 0; --layer) {
    before = add({.name = absl::StrCat("backward/", layer),
                  .resource = Resource::kWorker,
                  .waiting_for = {before}},
                 [&](size_t s) { return job.backward_ns[s][Index(layer)]; });
    for (size_t t = job.tensors.size(); t > 0; --t) {
      const Tensor& tensor = job.tensors[t - 1];
      if (*tensor.layers.begin() != layer) continue;
      const int32_t upload = add({.name = absl::StrCat("send/", tensor.parameter),
                                  .resource = Resource::kUplink,
                                  .parameter_server = tensor.server,
                                  .size_bytes = tensor.bytes,
                                  .waiting_for = {before},
                                  .parameter = tensor.parameter},
                                 none);
      add({.name = absl::StrCat("update/", tensor.parameter),
           .resource = Resource::kParameterServer,
           .parameter_server = tensor.server,
           .waiting_for = {upload},
           .parameter = tensor.parameter},
          [&](size_t s) { return tensor.update_ns[s]; });
    }
  }
  for (const std::vector<int64_t>& own : lengths) {
    RecordedStep& step = draft.steps.emplace_back();
    int64_t now = 0;
    for (const int64_t length : own) {
      step.start_ns.push_back(now);
      now += length;
      step.end_ns.push_back(now);
    }
  }
  return Profile::Create(std::move(draft)).value();
}

// One tensor a layer, and now and then none or two.
LayeredJob RandomJob(std::mt19937_64& random, int32_t most_layers) {
  const auto up_to = [&](int64_t last) {
    return std::uniform_int_distribution<int64_t>(1, last)(random);
  };
  LayeredJob job;
  const auto layers = static_cast<int32_t>(up_to(most_layers));
  const int64_t scale = int64_t{200} << up_to(6);
  const auto steps = static_cast<size_t>(up_to(3));
  for (size_t s = 0; s < steps; ++s) {
    std::vector<int64_t>& forward = job.forward_ns.emplace_back();
    std::vector<int64_t>& backward = job.backward_ns.emplace_back();
    for (int32_t layer = 0; layer < layers; ++layer) {
      forward.push_back(up_to(10'000));
      backward.push_back(up_to(20'000));
    }
  }
  for (int32_t layer = 0; layer < layers; ++layer) {
    const int64_t kind = up_to(8);
    const int count = layer == 0 || kind > 2 ? (kind == 8 ? 2 : 1) : 0;
    for (int i = 0; i < count; ++i) {
      Tensor& tensor = job.tensors.emplace_back();
      tensor.parameter = absl::StrCat("v", layer, "_", i);
      tensor.bytes = 16 + up_to(scale);
      tensor.layers = {layer};
      for (size_t s = 0; s < steps; ++s) tensor.update_ns.push_back(up_to(500));
    }
  }
  return job;
}

// The job whose tensors are those of the strategy. Groups and parts stand where the writer puts
// them: a download where its first stood, an upload where its last did.
LayeredJob Merged(const LayeredJob& job, const std::vector<int32_t>& counts,
                  const std::vector<int32_t>& parts) {
  LayeredJob merged = job;
  merged.tensors.clear();
  size_t end = job.tensors.size();
  for (size_t g = 0; g < counts.size(); ++g) {
    const size_t begin = end - Index(counts[g]);
    Tensor all{.update_ns = std::vector<int64_t>(job.forward_ns.size(), 0)};
    for (size_t t = begin; t < end; ++t) {
      all.bytes += job.tensors[t].bytes;
      all.layers.insert(job.tensors[t].layers.begin(), job.tensors[t].layers.end());
      for (size_t s = 0; s < all.update_ns.size(); ++s)
        all.update_ns[s] += job.tensors[t].update_ns[s];
    }
    // Of one layer the parts are uploaded from the first on, and downloaded so, too; here uploads
    // go from the last tensor on, so the parts stand the other way round, which is the same but for
    // their bytes' rounding.
    for (int32_t part = 0; part < parts[g]; ++part) {
      Tensor piece = all;
      piece.parameter = absl::StrCat(job.tensors[begin].parameter, "/", part);
      piece.bytes = all.bytes * (part + 1) / parts[g] - all.bytes * part / parts[g];
      for (int64_t& update : piece.update_ns)
        update = update * (part + 1) / parts[g] - update * part / parts[g];
      merged.tensors.insert(merged.tensors.begin() + part, std::move(piece));
    }
    end = begin;
  }
  return merged;
}

StrategyDraft DraftOf(int32_t workers, int32_t servers, Synchronization synchronization,
                      double overhead_seconds) {
  // Random starts are within a recorded step, which a job written anew has another one of.
  StrategyDraft draft{.options = {.steps_per_worker = 12,
                                  .warmup_steps = 2,
                                  .replications = 1,
                                  .start = Start::kSimultaneous}};
  draft.scenario.workers = workers;
  draft.scenario.communication = ParameterServersDraft{
      .servers = servers,
      .parsing_overhead = ParsingOverhead{.seconds_per_byte = 0, .seconds = overhead_seconds},
      .synchronization = synchronization};
  return draft;
}

double StepsPerSecond(const Profile& profile, const StrategyDraft& draft) {
  const absl::StatusOr<ThroughputQuery> query =
      ResolveThroughput(profile, {.scenario = draft.scenario, .options = draft.options});
  EXPECT_TRUE(query.ok()) << query.status();
  const auto answer = PredictThroughput(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? answer->predictions.front().steps_per_second : 0;
}

// Groups of consecutive gradients, from the last tensor on, as they stand in the graph.
Strategy StrategyOf(const Profile& profile, const std::vector<int32_t>& counts,
                    const std::vector<int32_t>& parts) {
  const std::vector<FusedTensors> alone = NothingFused(profile).tensors;
  Strategy strategy;
  size_t next = 0;
  for (size_t g = 0; g < counts.size(); ++g) {
    FusedTensors& tensors = strategy.tensors.emplace_back();
    tensors.partitions = parts[g];
    for (int32_t i = 0; i < counts[g]; ++i)
      tensors.gradients.push_back(alone[next++].gradients.front());
  }
  return strategy;
}

TEST(ServerStrategiesTest, AJobWithAStrategyIsTheSameJobOfThoseTensors) {
  std::mt19937_64 random(21);
  for (int seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const LayeredJob job = RandomJob(random, 7);
    const Profile profile = ProfileOf(job);
    std::vector<int32_t> counts;
    std::vector<int32_t> parts;
    for (auto left = static_cast<int32_t>(job.tensors.size()); left > 0;) {
      counts.push_back(std::uniform_int_distribution<int32_t>(1, left)(random));
      parts.push_back(std::uniform_int_distribution<int32_t>(1, 3)(random));
      left -= counts.back();
    }
    const auto workers = std::uniform_int_distribution<int32_t>(1, 4)(random);
    const Synchronization synchronization =
        seed % 2 == 0 ? Synchronization::kSynchronous : Synchronization::kAsynchronous;
    const StrategyDraft draft = DraftOf(workers, 1, synchronization, 1e-7 * (seed % 5));
    const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
    ASSERT_TRUE(query.ok()) << query.status();
    const auto applied = Apply(profile, query->scenario, StrategyOf(profile, counts, parts),
                               FusionCosts(profile, {}, std::nullopt));
    ASSERT_TRUE(applied.ok()) << applied.status();
    const Profile merged = ProfileOf(Merged(job, counts, parts));
    ASSERT_EQ(applied->profile.operations().size(), merged.operations().size());
    const double expected = StepsPerSecond(merged, draft);
    // Parts are cut in another order, so bytes and times differ by their rounding.
    EXPECT_NEAR(StepsPerSecond(applied->profile, draft), expected, 2e-3 * expected);
    if (std::all_of(parts.begin(), parts.end(), [](int32_t count) { return count == 1; })) {
      EXPECT_EQ(StepsPerSecond(applied->profile, draft), expected);
    }
  }
}

TEST(ServerStrategiesTest, WhatIsNeitherFusedNorCutStaysAsItWas) {
  std::mt19937_64 random(22);
  const Profile profile = ProfileOf(RandomJob(random, 7));
  const StrategyQuery query =
      ResolveStrategies(profile, DraftOf(2, 1, Synchronization::kAsynchronous, 0)).value();
  const auto applied =
      Apply(profile, query.scenario, NothingFused(profile), FusionCosts(profile, {}, std::nullopt));
  ASSERT_TRUE(applied.ok());
  EXPECT_EQ(applied->profile.content(), profile.content());
}

TEST(ServerStrategiesTest, PartsGoToTheServersWithTheFewestBytes) {
  LayeredJob job{.forward_ns = {{1000, 1000, 1000}}, .backward_ns = {{1000, 1000, 1000}}};
  job.servers = 3;
  for (int32_t layer = 0; layer < 3; ++layer) {
    job.tensors.push_back({.parameter = absl::StrCat("v", layer),
                           .bytes = layer == 2 ? 9000 : 100 * (layer + 1),
                           .layers = {layer},
                           .update_ns = {30},
                           .server = layer == 2 ? 0 : 1});
  }
  const Profile profile = ProfileOf(job);
  const StrategyQuery query =
      ResolveStrategies(profile, DraftOf(2, 3, Synchronization::kAsynchronous, 0)).value();
  // v2 in three parts; v1 and v0 stay on server 1, where there are 300 bytes already.
  const auto applied = Apply(profile, query.scenario, StrategyOf(profile, {1, 1, 1}, {3, 1, 1}),
                             FusionCosts(profile, {}, std::nullopt));
  ASSERT_TRUE(applied.ok()) << applied.status();
  std::vector<std::string> placed;
  for (const Operation& operation : applied->profile.operations()) {
    if (operation.resource == Resource::kUplink || operation.resource == Resource::kParameterServer)
      placed.push_back(
          absl::StrCat(operation.name, "@", operation.parameter_server, " ", operation.size_bytes));
  }
  EXPECT_THAT(placed,
              ElementsAre("send/v2@0 3000", "send/v2#2@2 3000", "send/v2#3@1 3000", "update/v2@0 0",
                          "update/v2#2@2 0", "update/v2#3@1 0", "send/v1@1 200", "update/v1@1 0",
                          "send/v0@1 100", "update/v0@1 0"));
  // Each part's update waits for its own upload only, and takes its share of the time.
  const std::vector<Operation>& operations = applied->profile.operations();
  for (const Operation& operation : operations) {
    if (operation.resource != Resource::kParameterServer) continue;
    ASSERT_EQ(operation.waiting_for.size(), 1);
    EXPECT_EQ(operations[Index(operation.waiting_for.front())].parameter, operation.parameter);
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].name.rfind("update/v2", 0) != 0) continue;
    const RecordedStep& step = applied->profile.steps().front();
    EXPECT_EQ(step.end_ns[i] - step.start_ns[i], 10) << operations[i].name;
  }
}

TEST(ServerStrategiesTest, AGroupHasTheLowestRankOfWhatItCarries) {
  std::mt19937_64 random(23);
  LayeredJob job = RandomJob(random, 7);
  while (job.tensors.size() < 3) job = RandomJob(random, 7);
  const Profile profile = ProfileOf(job);
  StrategyDraft draft = DraftOf(2, 1, Synchronization::kAsynchronous, 0);
  ParameterServersDraft& servers = draft.scenario.servers();
  servers.transfer_order = TransferOrder::kExplicit;
  for (size_t t = 0; t < job.tensors.size(); ++t)
    servers.transfer_priorities[absl::StrCat("recv/", job.tensors[t].parameter)] =
        static_cast<int32_t>(10 + t);
  const StrategyQuery query = ResolveStrategies(profile, draft).value();
  std::vector<int32_t> counts(job.tensors.size() - 1, 1);
  counts.back() = 2;  // the first two tensors
  const auto applied = Apply(profile, query.scenario,
                             StrategyOf(profile, counts, std::vector<int32_t>(counts.size(), 1)),
                             FusionCosts(profile, {}, std::nullopt));
  ASSERT_TRUE(applied.ok()) << applied.status();
  const auto& ranks = applied->scenario.servers().transfer_priorities;
  EXPECT_EQ(ranks.size(), counts.size());
  EXPECT_EQ(ranks.at(absl::StrCat("recv/", job.tensors[0].parameter)), 10);
  EXPECT_EQ(ranks.at(absl::StrCat("recv/", job.tensors[2].parameter)), 12);
}

// Every grouping of consecutive gradients, whole.
double LeastStep(const Profile& profile, const StrategyQuery& query, const FusionCosts& costs) {
  const InOrder executor;
  Replays replays(profile, query, costs, NeverStop, executor, nullptr);
  const size_t gradients = NothingFused(profile).tensors.size();
  double most = 0;
  for (uint32_t bits = 0; bits < (1U << (gradients - 1)); ++bits) {
    std::vector<int32_t> counts = {1};
    for (size_t i = 0; i + 1 < gradients; ++i) {
      if ((bits >> i) & 1U) {
        counts.push_back(1);
      } else {
        ++counts.back();
      }
    }
    const absl::StatusOr<Replay> replay =
        replays.Of(StrategyOf(profile, counts, std::vector<int32_t>(counts.size(), 1)));
    EXPECT_TRUE(replay.ok()) << replay.status();
    most = std::max(most, replay->steps_per_second);
  }
  return 1 / most;
}

TEST(ServerStrategiesTest, TheSearchComesNearTheBestOfAllGroupings) {
  std::mt19937_64 random(24);
  int best = 0;
  double worst = 1;
  constexpr int kSeeds = 60;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    LayeredJob job = RandomJob(random, 7);
    while (job.tensors.size() > 7) job = RandomJob(random, 7);
    const Profile profile = ProfileOf(job);
    StrategyDraft draft = DraftOf(3, 1, Synchronization::kSynchronous, 1e-6 * (seed % 4));
    draft.max_partitions = 1;
    const StrategyQuery query = ResolveStrategies(profile, draft).value();
    const FusionCosts costs(profile, {}, std::nullopt);
    const InOrder executor;
    Replays replays(profile, query, costs, NeverStop, executor, nullptr);
    const auto found = SearchStrategies(profile, query, costs, {}, replays, NeverStop);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_FALSE(found->is_chains_best);
    const double step = 1 / found->steps_per_second;
    const double least = LeastStep(profile, query, costs);
    EXPECT_GE(step, least * (1 - 1e-9));
    best += step <= least * (1 + 1e-9) ? 1 : 0;
    worst = std::max(worst, step / least);
  }
  std::printf("servers: %d of %d the best of all groupings, at worst %.4f of it\n", best, kSeeds,
              worst);
  EXPECT_GE(best, kSeeds * 3 / 4);
  EXPECT_LE(worst, 1.1);
}

const ComparedStrategy* Compared(const StrategyAnswer& answer, const std::string& name) {
  for (const ComparedStrategy& compared : answer.compared) {
    if (compared.name == name) return &compared;
  }
  return nullptr;
}

TEST(ServerStrategiesTest, IsNeverWorseThanAsRecordedOrBytePsOnTheZoo) {
  for (const std::string model : {"alexnet", "vgg16", "resnet50", "inception_v3"}) {
    // The smallest goes through the same code.
    if (testing::kSanitized && model != "alexnet") continue;
    for (const int32_t servers : {1, 4}) {
      const Profile profile =
          BuildZooProfile(model, {.batch_size = 32,
                                  .platform = {.bandwidth_bytes_per_second = 1.25e9},
                                  .variation = {.own = 0.05, .common = 0.05}})
              .value();
      StrategyDraft draft = DraftOf(4, servers, Synchronization::kSynchronous, 50e-6);
      draft.options = {.steps_per_worker = 20, .warmup_steps = 3, .replications = 2};
      const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
      ASSERT_TRUE(query.ok()) << query.status();
      const absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, *query, NeverStop);
      ASSERT_TRUE(answer.ok()) << answer.status();
      const double found = answer->prediction.examples_per_second;
      ASSERT_NE(Compared(*answer, "BYTEPS"), nullptr);
      ASSERT_NE(Compared(*answer, "AS_RECORDED"), nullptr);
      // The job stays as it is where nothing is known to be faster.
      const double within = answer->keeps_as_recorded ? 1 - kLeastGain : 1 - 1e-9;
      for (const ComparedStrategy& compared : answer->compared)
        EXPECT_GE(found, compared.examples_per_second * within) << model << compared.name;
      EXPECT_EQ(answer->keeps_as_recorded, answer->gain.is_none);
      EXPECT_EQ(answer->keeps_as_recorded, answer->tensors.empty());
      std::printf(
          "%-13s %d servers: as recorded %7.1f, byteps %7.1f, found %7.1f examples/s, "
          "%d replays; %s\n",
          model.c_str(), servers, Compared(*answer, "AS_RECORDED")->examples_per_second,
          Compared(*answer, "BYTEPS")->examples_per_second, found, answer->search.replays,
          answer->reason.c_str());
      EXPECT_FALSE(answer->lower_bound_seconds.has_value());
      EXPECT_THAT(answer->why_no_bound, HasSubstr("parameter servers"));
      // VGG's and AlexNet's largest tensor is most of the model: on one server it is the step.
      if (servers == 4 && (model == "vgg16" || model == "alexnet")) {
        EXPECT_GT(answer->gain.mean, 0.3) << model;
      }
    }
  }
}

// A job of all-reduces that is asked about with servers: what it has as it stands is what is
// predicted of it, to the bit, in every order and way to meet.
TEST(ServerStrategiesTest, AJobOfAllReducesIsMovedToServers) {
  for (const char* model : {"vgg16", "resnet18_cifar"}) {
    const Profile profile =
        BuildZooProfile(model, {.batch_size = 32,
                                .platform = {.bandwidth_bytes_per_second = 1.25e9},
                                .variation = {.own = 0.05, .common = 0.05},
                                .communication = ZooCommunication::kAllReduce})
            .value();
    for (const Synchronization meeting : {Synchronization::kSummed, Synchronization::kSynchronous,
                                          Synchronization::kAsynchronous}) {
      SCOPED_TRACE(absl::StrCat(model, " ", static_cast<int>(meeting)));
      StrategyDraft draft = DraftOf(4, 2, meeting, 50e-6);
      draft.options = {.steps_per_worker = 20, .warmup_steps = 3, .replications = 2};
      const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
      ASSERT_TRUE(query.ok()) << query.status();
      ASSERT_TRUE(query->job.has_value());
      const absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, *query, NeverStop);
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(answer->as_recorded.steps_per_second, StepsPerSecond(profile, draft));
      ASSERT_NE(Compared(*answer, "BYTEPS"), nullptr);
      EXPECT_GE(answer->prediction.steps_per_second,
                answer->as_recorded.steps_per_second * (1 - kLeastGain));
      if (std::string(model) == "vgg16") {
        EXPECT_GT(answer->gain.mean, 0.3);
      }
      for (const NamedTensors& tensors : answer->tensors) {
        for (const std::string& name : tensors.operations) {
          EXPECT_TRUE(std::ranges::any_of(profile.operations(), [&](const Operation& operation) {
            return operation.name == name && SumsGradients(operation);
          })) << name;
        }
      }
    }
  }
}

TEST(ServerStrategiesTest, RanksOfAJobOfAllReducesAreThoseOfItsGradients) {
  const Profile profile =
      BuildZooProfile("resnet18_cifar", {.batch_size = 32,
                                         .platform = {.bandwidth_bytes_per_second = 1.25e9},
                                         .communication = ZooCommunication::kAllReduce})
          .value();
  StrategyDraft draft = DraftOf(3, 1, Synchronization::kSynchronous, 0);
  int32_t rank = 0;
  ParameterServersDraft& how = draft.scenario.servers();
  how.transfer_order = TransferOrder::kExplicit;
  for (const Operation& operation : profile.operations())
    if (SumsGradients(operation)) how.transfer_priorities[operation.name] = rank++;
  const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->scenario.servers().transfer_priorities.size(), Index(rank));
  const absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, *query, NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->as_recorded.steps_per_second, StepsPerSecond(profile, draft));
}

// Parts that are asked for are of the job as it is; a strategy has its own.
TEST(ServerStrategiesTest, PartsOfTheScenarioAreOfTheJobAsItIs) {
  const Profile profile =
      BuildZooProfile("resnet18_cifar", {.batch_size = 32,
                                         .platform = {.bandwidth_bytes_per_second = 1.25e9},
                                         .communication = ZooCommunication::kAllReduce})
          .value();
  StrategyDraft draft = DraftOf(2, 3, Synchronization::kSummed, 0);
  draft.scenario.servers().partition_bytes = 1'000'000;
  const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
  ASSERT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, *query, NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->as_recorded.steps_per_second, StepsPerSecond(profile, draft));
  EXPECT_EQ(answer->as_recorded.scenario.servers().partition_bytes, 1'000'000);
  ASSERT_NE(Compared(*answer, "AS_RECORDED"), nullptr);
  ASSERT_NE(Compared(*answer, "BYTEPS"), nullptr);
  const ComparedStrategy* const whole = Compared(*answer, "NO_FUSION");
  ASSERT_NE(whole, nullptr);
  draft.scenario.servers().partition_bytes.reset();
  EXPECT_NEAR(2 / whole->step_seconds, StepsPerSecond(profile, draft), 1e-9);  // two workers
  if (!answer->keeps_as_recorded) {
    EXPECT_EQ(answer->prediction.scenario.servers().partition_bytes, 0);
  }
}

TEST(ServerStrategiesTest, ByLayerWhatTheFirstLayerNeedsGoesFirstThereAndBack) {
  LayeredJob job{.forward_ns = {{1000, 1000, 1000}}, .backward_ns = {{1000, 1000, 1000}}};
  for (int32_t layer = 0; layer < 3; ++layer) {
    job.tensors.push_back({.parameter = absl::StrCat("v", layer),
                           .bytes = 1000,
                           .layers = {layer},
                           .update_ns = {30}});
  }
  const Profile profile = ProfileOf(job);
  const StrategyQuery query =
      ResolveStrategies(profile, DraftOf(2, 1, Synchronization::kSummed, 0)).value();
  Strategy strategy = NothingFused(profile);
  strategy.by_layer = true;
  strategy.tensors.front().partitions = 2;  // of the last layer
  const AppliedStrategy applied =
      Apply(profile, query.scenario, strategy, FusionCosts(profile, {}, std::nullopt)).value();
  EXPECT_EQ(applied.scenario.servers().transfer_order, TransferOrder::kExplicit);
  using ::testing::Pair;
  EXPECT_THAT(applied.scenario.servers().transfer_priorities,
              ::testing::ElementsAre(Pair("recv/v0", 0), Pair("recv/v1", 1), Pair("recv/v2", 2),
                                     Pair("recv/v2#2", 3), Pair("send/v0", 0), Pair("send/v1", 1),
                                     Pair("send/v2", 2), Pair("send/v2#2", 3)));
}

TEST(ServerStrategiesTest, WhatIsTooLargeTogetherStaysApart) {
  LayeredJob job{.forward_ns = {{1000, 1000, 1000}}, .backward_ns = {{1000, 1000, 1000}}};
  for (int32_t layer = 0; layer < 3; ++layer) {
    job.tensors.push_back({.parameter = absl::StrCat("v", layer),
                           .bytes = ProfileLimits().max_transfer_bytes / 2 + 1,
                           .layers = {layer},
                           .update_ns = {30}});
  }
  const Profile profile = ProfileOf(job);
  StrategyDraft draft = DraftOf(2, 2, Synchronization::kSynchronous, 0);
  draft.scenario.bandwidth_bytes_per_second = 1e13;
  const StrategyQuery query = ResolveStrategies(profile, draft).value();
  const absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, query, NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GT(answer->gain.mean, 0.1);
  for (const NamedTensors& tensors : answer->tensors) EXPECT_EQ(tensors.operations.size(), 1);
}

// The job as two workers recorded it, of which the second takes twice as long for everything.
Profile AsRecordedByTwo(const Profile& profile) {
  ProfileDraft draft = profile.content();
  JobRecording& recording = draft.recording.emplace();
  int64_t begin = 1'000'000'000;
  for (const char* name : {"rank 0", "rank 1"}) {
    WorkerRecording& worker = recording.workers.emplace_back();
    worker.name = name;
    for (RecordedStep step : draft.steps) {
      worker.step_begins_ns.push_back(begin);
      worker.step_ends_ns.push_back(begin += 1'000'000'000);
      if (recording.workers.size() == 1) continue;
      for (std::vector<int64_t>* times : {&step.start_ns, &step.end_ns}) {
        for (int64_t& time : *times) time *= 2;
      }
      worker.steps.push_back(std::move(step));
    }
  }
  return Profile::Create(std::move(draft)).value();
}

TEST(ServerStrategiesTest, AStrategyIsWrittenIntoTheStepsOfEveryWorker) {
  std::mt19937_64 random(26);
  LayeredJob job = RandomJob(random, 7);
  while (job.tensors.size() < 4) job = RandomJob(random, 7);
  job.servers = 2;
  const Profile profile = AsRecordedByTwo(ProfileOf(job));
  StrategyDraft draft = DraftOf(2, 2, Synchronization::kSynchronous, 2e-6);
  const StrategyQuery query = ResolveStrategies(profile, draft).value();
  std::vector<int32_t> counts(job.tensors.size() - 2, 1);
  counts.front() = 3;
  std::vector<int32_t> parts(counts.size(), 1);
  parts.front() = 2;
  const auto applied = Apply(profile, query.scenario, StrategyOf(profile, counts, parts),
                             FusionCosts(profile, {}, std::nullopt));
  ASSERT_TRUE(applied.ok()) << applied.status();
  ASSERT_EQ(applied->profile.recorded_workers(), 2);
  for (size_t s = 0; s < profile.steps().size(); ++s) {
    const RecordedStep& first = applied->profile.steps_of(0)[s];
    const RecordedStep& second = applied->profile.steps_of(1)[s];
    for (size_t i = 0; i < first.end_ns.size(); ++i) {
      // An update's part is rounded down.
      EXPECT_NEAR(static_cast<double>(second.end_ns[i] - second.start_ns[i]),
                  2.0 * static_cast<double>(first.end_ns[i] - first.start_ns[i]), 1);
    }
  }
  const absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, query, NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GE(answer->prediction.examples_per_second, answer->as_recorded.examples_per_second);
  EXPECT_GT(answer->search.accepted, 0);
}

TEST(ServerStrategiesTest, HalfABatchIsDoneTwiceBetweenDownloadsAndUploads) {
  LayeredJob job{.forward_ns = {{1000, 1000}}, .backward_ns = {{2000, 2000}}};
  for (int32_t layer = 0; layer < 2; ++layer) {
    job.tensors.push_back({.parameter = absl::StrCat("v", layer),
                           .bytes = 100,
                           .layers = {layer},
                           .update_ns = {30}});
  }
  const Profile profile = ProfileOf(job);
  MemoryModel model{.kept_bytes = std::vector<int64_t>(profile.operations().size(), 0),
                    .parameter_copies = kParameterCopiesBesideServers};
  model.kept_bytes[2] = 1000;  // forward/0
  EXPECT_EQ(EstimateMemory(profile, model).parameter_bytes, 2 * 200);
  const absl::StatusOr<MemoryPlan> plan =
      Accumulate(profile, model, std::vector<double>(profile.operations().size(), 0.5));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->memory.output_bytes, EstimateMemory(profile, model).output_bytes / 2);
  std::vector<std::string> names;
  for (const Operation& operation : plan->profile.operations()) names.push_back(operation.name);
  EXPECT_THAT(names,
              ElementsAre("half/forward/0", "half/forward/1", "half/backward/1", "half/backward/0",
                          "recv/v0", "recv/v1", "forward/0", "forward/1", "backward/1", "send/v1",
                          "update/v1", "backward/0", "send/v0", "update/v0"));
  // The same step, with free links: half of the computation twice.
  StrategyDraft draft = DraftOf(1, 1, Synchronization::kAsynchronous, 0);
  draft.scenario.bandwidth_bytes_per_second = 1e15;
  EXPECT_NEAR(StepsPerSecond(plan->profile, draft), StepsPerSecond(profile, draft),
              1e-3 * StepsPerSecond(profile, draft));
}

// The computations of a step whose servers sum what was all-reduced are not the profile's.
TEST(ResolveServerStrategiesTest, SumsOfAllReducesTakeNeitherFusionNorABudget) {
  const Profile profile =
      BuildZooProfile("resnet18_cifar", {.batch_size = 32,
                                         .platform = {.bandwidth_bytes_per_second = 1.25e9},
                                         .communication = ZooCommunication::kAllReduce})
          .value();
  StrategyDraft draft = DraftOf(2, 1, Synchronization::kSummed, 0);
  draft.fused_share = 0.8;
  draft.fused_costs = {{.operations = {"a", "b"}, .seconds = 1}};
  draft.memory.emplace().budget_bytes = 1'000'000'000;
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(ResolveStrategies(profile, draft).status()).faults) {
    fields.push_back(fault.field);
    EXPECT_THAT(fault.description, HasSubstr("--sync"));
  }
  EXPECT_THAT(fields, ElementsAre("fused_share", "fused_costs", "memory.budget_bytes"));
  draft = DraftOf(2, 1, Synchronization::kSynchronous, 0);
  draft.fused_share = 0.8;
  draft.memory.emplace().budget_bytes = 1'000'000'000;
  const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
  ASSERT_TRUE(query.ok()) << query.status();
  // Copies of parameters are those beside servers, with and without a word on memory.
  EXPECT_EQ(query->memory->parameter_copies, 2);
  draft.memory.reset();
  EXPECT_EQ(ResolveStrategies(profile, draft)->memory->parameter_copies, 2);
}

TEST(ResolveServerStrategiesTest, ListsSayHowManyWorkersThereAre) {
  const Profile profile =
      BuildZooProfile("alexnet",
                      {.batch_size = 32, .platform = {.bandwidth_bytes_per_second = 1.25e9}})
          .value();
  StrategyDraft draft;
  draft.scenario.worker_groups = {{.count = 2, .compute_speed_factor = 1},
                                  {.count = 1, .compute_speed_factor = 0.5}};
  EXPECT_EQ(ResolveStrategies(profile, draft)->scenario.workers, 3);
  draft.scenario.worker_groups.clear();
  draft.scenario.start_offsets_ns = {0, 5, 7, 9};
  EXPECT_EQ(ResolveStrategies(profile, draft)->scenario.workers, 4);
  draft.scenario.start_offsets_ns.clear();
  EXPECT_EQ(ResolveStrategies(profile, draft)->scenario.workers, 8);
}

TEST(ResolveServerStrategiesTest, EveryFaultIsNamed) {
  std::mt19937_64 random(25);
  LayeredJob job = RandomJob(random, 7);
  while (job.tensors.size() < 2) job = RandomJob(random, 7);
  ProfileDraft content = ProfileOf(job).content();
  std::vector<Operation*> uploads;
  for (Operation& operation : content.operations) {
    if (operation.resource == Resource::kUplink) uploads.push_back(&operation);
  }
  const auto fault_of = [](const ProfileDraft& profile, const StrategyDraft& draft) {
    const absl::Status status = ResolveStrategies(Profile::Create(profile).value(), draft).status();
    const ErrorDetails details = DetailsOf(status);
    EXPECT_EQ(details.reason, "REQUEST_INVALID") << status;
    return details.faults.empty() ? std::string()
                                  : absl::StrCat(details.faults.front().field, ": ",
                                                 details.faults.front().description);
  };
  StrategyDraft asked = DraftOf(2, 1, Synchronization::kSynchronous, 0);
  asked.shortcuts.partial_replay = false;
  EXPECT_THAT(fault_of(content, asked), HasSubstr("shortcuts.partial_replay: must be on"));
  StrategyDraft other;
  other.scenario.communication = AllReduceDraft{};
  EXPECT_THAT(fault_of(content, other), HasSubstr("scenario.all_reduce"));
  StrategyDraft bad = DraftOf(-1, 1, Synchronization::kSynchronous, 0);
  EXPECT_THAT(fault_of(content, bad), HasSubstr("scenario.workers: -1"));
  const std::string parameter = std::exchange(uploads[0]->parameter, uploads[1]->parameter);
  EXPECT_THAT(fault_of(content, {}), HasSubstr("both of parameter"));
  uploads[0]->parameter.clear();
  EXPECT_THAT(fault_of(content, {}),
              HasSubstr(absl::StrCat("\"", uploads[0]->name, "\" names no parameter")));
  uploads[0]->parameter = parameter;
  EXPECT_TRUE(ResolveStrategies(Profile::Create(content).value(), {}).ok());
}

}  // namespace
}  // namespace stepcast::server_strategies_test
