#include "core/predict/worlds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace stepcast {

double MostOfWaiting(double deviation, int32_t waiting) {
  return deviation * std::sqrt(2 * std::log(std::max(2, waiting)));
}

double Worlds::MostOfWaiting(int32_t workers, int32_t servers) const {
  return stepcast::MostOfWaiting(workers_.model.deviation(), workers) +
         (servers > 0 ? stepcast::MostOfWaiting(servers_.model.deviation(), servers) : 0);
}

namespace {

// Steps of a list, at least: workers that wait for each other in every step are as slow as the
// slowest of all, which a short list does not have.
constexpr int32_t kListedSteps = 64;
constexpr int32_t kListedStepsOfBarriers = 256;
constexpr uint64_t kListSeed = 0x5ca1ab1e;

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

Worlds::Worlds(const Profile& profile)
    : workers_(PartOf(profile, StepPart::kWorkers)),
      servers_(PartOf(profile, StepPart::kServers)) {}

Worlds::Part Worlds::PartOf(const Profile& profile, StepPart part) {
  Part made{.model = StepModelOf(profile, part), .scaling = {}};
  for (const World world : {World::kExpected, World::kSlower, World::kWider}) {
    const double wider = world == World::kWider ? kWiderBy : 1;
    const double shift = world == World::kSlower ? std::log1p(kSlowerBy) : 0;
    made.scaling[static_cast<size_t>(world)] =
        std::make_shared<const StepScaling>(made.model.logarithms, wider * made.model.own_deviation,
                                            wider * made.model.common_deviation, shift);
  }
  return made;
}

Worlds::ListedJob Worlds::List(World world, const JobProgram& job, const Ranking& ranking,
                               bool barriers) const {
  const int32_t recorded = job.program->step_count();
  const int32_t wanted = barriers ? kListedStepsOfBarriers : kListedSteps;
  const int32_t listed = (wanted + recorded - 1) / recorded * recorded;
  const auto scales = [&](const Part& part, size_t worker, StepPart which) {
    return ListedScales(part.model, *part.scaling[static_cast<size_t>(world)], worker, listed,
                        which);
  };
  const auto list = [&](const Program& program, size_t worker) {
    return Listed(program, listed, scales(workers_, worker, StepPart::kWorkers),
                  scales(servers_, worker, StepPart::kServers));
  };
  ListedJob made{.job = job, .ranking = Listed(ranking, recorded, listed)};
  made.job.program = list(*job.program, 0);
  for (size_t worker = 0; worker < job.of_recorded.size(); ++worker)
    made.job.of_recorded[worker] =
        worker == 0 ? made.job.program : list(*job.of_recorded[worker], worker);
  return made;
}

}  // namespace stepcast
