#include "tests/bench/job.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/communication/parameter_servers.h"
#include "core/model/made_steps.h"
#include "core/model/scenario.h"
#include "core/orders/transfer_ranks.h"
#include "core/zoo/model_zoo.h"

namespace stepcast::bench {

namespace {

constexpr double kBytesPerSecond = 1.25e9;
constexpr double kVariation = 0.1;
constexpr int32_t kZooSteps = 20;
constexpr uint64_t kOffsetStream = 3;

template <typename T>
T Valid(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

int64_t MeanStepNs(const Profile& profile) {
  int64_t sum = 0;
  for (const RecordedStep& step : profile.steps())
    sum += *std::max_element(step.end_ns.begin(), step.end_ns.end());
  return sum / static_cast<int64_t>(profile.steps().size());
}

// Whatever the profile knows, in graph order and with equal shares unless a row says otherwise.
Job JobOf(const Profile& profile, const ParameterServersDraft& servers) {
  ParameterServersDraft asked = servers;
  if (asked.transfer_priorities.empty())
    asked.transfer_order = asked.transfer_order.value_or(TransferOrder::kGraph);
  if (!asked.link_sharing.has_value()) asked.link_sharing = EqualShares{};
  const Scenario scenario = Valid(ResolveScenario(profile, {.communication = asked}));
  auto program = std::make_shared<const Program>(BuildProgram(profile, scenario));
  Ranking ranking = Valid(RankingOf(profile, scenario, *program, NeverStop));
  return {.program = std::move(program),
          .ranking = std::make_shared<const Ranking>(std::move(ranking)),
          .bandwidth_bytes_per_second = scenario.bandwidth_bytes_per_second,
          .recorded_step_ns = MeanStepNs(profile)};
}

std::vector<TrainingLayer> RandomLayers(int32_t count, uint64_t seed) {
  Random random({seed});
  std::vector<TrainingLayer> layers;
  for (int32_t i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    TrainingLayer layer{.name = name};
    if (i > 0) layer.inputs.push_back(i - 1);
    if (i > 1 && random.Below(8) == 0)
      layer.inputs.insert(layer.inputs.begin(),
                          std::max(0, i - 2 - static_cast<int32_t>(random.Below(4))));
    // At the links' speed 40 to 280 microseconds each way, against 60 to 420 of computation.
    layer.parameters.push_back(
        {.name = name, .size_bytes = static_cast<int64_t>(50'000 + random.Below(300'000))});
    layer.forward_ns = static_cast<int64_t>(20'000 + random.Below(120'000));
    layer.backward_ns = static_cast<int64_t>(40'000 + random.Below(240'000));
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace

Profile ZooProfile(std::string_view model) {
  const ZooOptions options{.platform = {.bandwidth_bytes_per_second = kBytesPerSecond},
                           .variation = {.own = kVariation, .steps = kZooSteps}};
  return Valid(BuildZooProfile(model, options));
}

Job ZooJob(std::string_view model, int32_t servers) {
  return JobOf(ZooProfile(model), {.servers = servers});
}

Job OrderedZooJob(std::string_view model, TransferOrder order, int64_t window_bytes) {
  ParameterServersDraft servers{.transfer_order = order};
  if (window_bytes > 0) servers.multiplexing = WindowDraft{.bytes = window_bytes};
  return JobOf(ZooProfile(model), servers);
}

Job RearrangedZooJob(std::string_view model, TransferOrder order) {
  const Profile profile = ZooProfile(model);
  const Job ordered = OrderedZooJob(model, order);
  const auto size = static_cast<int32_t>(profile.operations().size());
  const auto is_download = [&](int32_t op) {
    return profile.operations()[Index(op)].resource == Resource::kDownlink;
  };
  std::vector<int32_t> order_of(Index(size));
  std::iota(order_of.begin(), order_of.end(), 0);
  std::stable_sort(order_of.begin(), order_of.end(), [&](int32_t a, int32_t b) {
    if (!is_download(a) || !is_download(b)) return is_download(a) && !is_download(b);
    return ordered.ranking->ranks[Index(a)] < ordered.ranking->ranks[Index(b)];
  });
  std::vector<int32_t> place_of(Index(size));
  for (int32_t place = 0; place < size; ++place) place_of[Index(order_of[Index(place)])] = place;
  ProfileDraft draft{.batch_size = profile.batch_size(), .platform = profile.platform()};
  for (const int32_t op : order_of) {
    draft.operations.push_back(profile.operations()[Index(op)]);
    for (int32_t& before : draft.operations.back().waiting_for) before = place_of[Index(before)];
  }
  for (const RecordedStep& step : profile.steps()) {
    RecordedStep& moved = draft.steps.emplace_back();
    for (const int32_t op : order_of) {
      moved.start_ns.push_back(step.start_ns[Index(op)]);
      moved.end_ns.push_back(step.end_ns[Index(op)]);
    }
  }
  return JobOf(Valid(Profile::Create(std::move(draft))), ParameterServersDraft{});
}

Job LayeredJob(int32_t layers, int32_t recorded_steps, uint64_t seed) {
  TrainingGraph graph = BuildTrainingGraph(RandomLayers(layers, seed));
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = kBytesPerSecond}};
  draft.steps = MakeSteps(graph.operations, graph.durations_ns, draft.platform,
                          {.own = kVariation, .steps = recorded_steps, .seed = seed});
  draft.operations = std::move(graph.operations);
  return JobOf(Valid(Profile::Create(std::move(draft))), {.servers = 1});
}

JobGraph JobGraphOf(const Job& job, int32_t workers) {
  const Scenario scenario{.workers = workers,
                          .bandwidth_bytes_per_second = job.bandwidth_bytes_per_second};
  return stepcast::JobOf(job.program, job.ranking, scenario);
}

RunOptions OptionsFor(const Job& job, int32_t workers, int32_t steps_per_worker) {
  RunOptions options{.steps_per_worker = steps_per_worker};
  for (int32_t worker = 0; worker < workers; ++worker) {
    Random random({options.seed, static_cast<uint64_t>(worker), kOffsetStream});
    options.start_offsets.push_back(Nanoseconds(
        static_cast<int64_t>(random.Unit() * static_cast<double>(job.recorded_step_ns))));
  }
  return options;
}

RunOptions OptionsForOperations(const Job& job, int32_t workers, int64_t operations) {
  const int64_t a_step = int64_t{workers} * job.program->size();
  return OptionsFor(job, workers,
                    static_cast<int32_t>(std::max<int64_t>(2, (operations + a_step - 1) / a_step)));
}

}  // namespace stepcast::bench
