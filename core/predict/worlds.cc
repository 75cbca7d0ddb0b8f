#include "core/predict/worlds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace stepcast {

namespace {

// Steps of a list, at least: workers that wait for each other in every step are as slow as the
// slowest of all, which a short list does not have.
constexpr int32_t kListedSteps = 64;
constexpr int32_t kListedStepsOfBarriers = 256;
constexpr uint64_t kListSeed = 0x5ca1ab1e;

StepScaling ScalingOf(const StepModel& model, World world) {
  const double wider = world == World::kWider ? Worlds::kWiderBy : 1;
  const double shift = world == World::kSlower ? std::log1p(Worlds::kSlowerBy) : 0;
  return StepScaling(model.logarithms, wider * model.own_deviation, wider * model.common_deviation,
                     shift);
}

// The factors of listed steps, in StepScaling::kUnit: those of equal probability, in a random order
// that is the same in every world.
std::vector<int64_t> ListedScales(const StepModel& model, const StepScaling& scaling,
                                  size_t recorded_worker, int32_t listed, StepPart part) {
  const auto count = static_cast<uint64_t>(listed);
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  Random random({kListSeed, recorded_worker, static_cast<uint64_t>(part)});
  for (uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  Random common({kListSeed, static_cast<uint64_t>(part)});
  std::vector<int64_t> scales;
  const auto recorded = static_cast<uint64_t>(model.steps);
  for (uint64_t i = 0; i < count; ++i) {
    const double probability = (static_cast<double>(order[i]) + 0.5) / static_cast<double>(count);
    scales.push_back(scaling.At(probability, common.Unit(), recorded_worker,
                                static_cast<int32_t>(i % recorded)));
  }
  return scales;
}

std::shared_ptr<const Program> Listed(const Program& program, int32_t listed,
                                      const std::vector<int64_t>& workers,
                                      const std::vector<int64_t>& servers) {
  std::vector<Span> durations;
  durations.reserve(Index(listed) * Index(program.size()));
  for (int32_t step = 0; step < listed; ++step) {
    for (OpIndex op = 0; op < program.size(); ++op) {
      const Span recorded = program.duration(step % program.step_count(), op);
      const bool of_worker = program.lanes().IsCompute(program.lane(op));
      // Parsing takes what its bytes say.
      const bool scaled = !program.IsTransfer(op) && !program.IsParsing(op);
      const int64_t scale = of_worker ? workers[Index(step)] : servers[Index(step)];
      durations.push_back(
          scaled ? Span{InWholeNanoseconds(recorded).ticks / StepScaling::kUnit * scale}
                 : recorded);
    }
  }
  return std::make_shared<const Program>(program.WithDurations(std::move(durations)));
}

std::shared_ptr<const Ranking> Listed(const Ranking& ranking, int32_t recorded, int32_t listed) {
  if (ranking.rule != Ranking::Rule::kRecorded) return std::make_shared<const Ranking>(ranking);
  Ranking made{.rule = ranking.rule, .ranks = {}};
  const size_t size = ranking.ranks.size() / Index(recorded);
  for (int32_t step = 0; step < listed; ++step) {
    const auto from =
        ranking.ranks.begin() + static_cast<std::ptrdiff_t>(Index(step % recorded) * size);
    made.ranks.insert(made.ranks.end(), from, from + static_cast<std::ptrdiff_t>(size));
  }
  return std::make_shared<const Ranking>(std::move(made));
}

}  // namespace

Worlds::Worlds(const Profile& profile, const Scenario& scenario, const JobProgram& job,
               const std::shared_ptr<const Ranking>& ranking)
    : workers_(StepModelOf(profile, StepPart::kWorkers)) {
  const StepModel servers = StepModelOf(profile, StepPart::kServers);
  const int32_t recorded = job.program->step_count();
  const int32_t wanted = scenario.is_synchronous() ? kListedStepsOfBarriers : kListedSteps;
  const int32_t listed = (wanted + recorded - 1) / recorded * recorded;
  for (const World world : {World::kExpected, World::kSlower, World::kWider}) {
    Of& made = worlds_[static_cast<size_t>(world)];
    made.job = job;
    const StepScaling scaling = ScalingOf(workers_, world);
    if (!scenario.has_servers()) {
      made.scaling = std::make_shared<const StepScaling>(scaling);
      continue;
    }
    const StepScaling of_servers = ScalingOf(servers, world);
    const auto list = [&](const Program& program, size_t worker) {
      return Listed(program, listed,
                    ListedScales(workers_, scaling, worker, listed, StepPart::kWorkers),
                    ListedScales(servers, of_servers, worker, listed, StepPart::kServers));
    };
    made.job.program = list(*job.program, 0);
    for (size_t worker = 0; worker < job.of_recorded.size(); ++worker)
      made.job.of_recorded[worker] =
          worker == 0 ? made.job.program : list(*job.of_recorded[worker], worker);
    made.ranking = Listed(*ranking, recorded, listed);
  }
}

}  // namespace stepcast
