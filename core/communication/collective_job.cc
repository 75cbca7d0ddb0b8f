// The job of workers that meet in collectives: how long each takes, what slows it, and by which
// rule it begins; and the time of all collectives of a step together.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include "core/base/index.h"
#include "core/base/time.h"
#include "core/communication/all_reduce.h"
#include "core/communication/collective_time.h"
#include "core/network/link_level.h"

namespace stepcast {

JointWork JointWorkOf(const std::vector<PlannedCollective>& collectives, int32_t concurrent) {
  JointWork joint{.concurrent = concurrent};
  for (const PlannedCollective& collective : collectives) {
    joint.ops.push_back(collective.op);
    if (collective.last_op >= 0) joint.ops.push_back(collective.last_op);
  }
  return joint;
}

namespace {

// The level of something that advances by `part` while something else does by `whole`: at most as
// fast, and at least by a unit.
LinkLevel LevelOf(double part, double whole) {
  const double units = static_cast<double>(LinkLevel::kUnit) * (part / whole);
  return LinkLevel::OfUnits(std::max<int64_t>(1, static_cast<int64_t>(units)));
}

JointPace PaceOf(const AllReduce& how, int32_t of_group, int64_t bytes,
                 const ContendingTimes& times) {
  const auto speed_of = [&](Span time) {
    if (time == times.least()) return LevelOf(1, 1);
    return LevelOf(static_cast<double>(times.least().ticks), static_cast<double>(time.ticks));
  };
  const int32_t threads = ThreadsOf(how, static_cast<double>(bytes), of_group);
  return {.computation = LevelOf(ComputationSpeed(*how.contention, threads), 1),
          .beside_computation = speed_of(times.overlapped),
          .alone = speed_of(times.alone)};
}

// The level of something that takes so many times as long.
LinkLevel SlowedLevel(double slowdown) {
  const double speed = static_cast<double>(LinkLevel::kUnit) / slowdown;
  return LinkLevel::OfUnits(static_cast<int64_t>(speed));
}

JointPace PaceOf(const AllReduce& how) {
  return {.computation = SlowedLevel(how.overlap_slowdown),
          .beside_computation = SlowedLevel(how.collective_slowdown),
          .alone = SlowedLevel(1)};
}

JointPriorities PrioritiesOf(const std::vector<PlannedCollective>& collectives,
                             const ByteScheduler& scheduler) {
  JointPriorities priorities;
  priorities.credit_bytes = scheduler.credit_bytes;
  for (const PlannedCollective& collective : collectives) {
    priorities.ranks.push_back(collective.rank);
    priorities.bytes.push_back(collective.bytes);
  }
  return priorities;
}

JointCycles CyclesOf(const std::vector<PlannedCollective>& collectives, const Horovod& horovod,
                     const AllReduce& how, const std::shared_ptr<const CollectiveTimes>& times) {
  JointCycles cycles;
  cycles.interval = std::max(FromSeconds(horovod.cycle_seconds), Span{1});
  cycles.most_bytes = horovod.fusion_bytes;
  std::vector<Collective> kinds;
  for (const PlannedCollective& collective : collectives) {
    cycles.bytes.push_back(collective.bytes);
    cycles.classes.push_back(collective.kind == Collective::kAllReduce ? 0 : -1);
    kinds.push_back(collective.kind);
  }
  cycles.length_of = [times, kinds](size_t position, int64_t bytes) {
    return times->TimeOf(kinds[position], bytes);
  };
  if (how.contention.has_value()) {
    cycles.pace_of = [times, kinds, how](size_t position, int64_t bytes) {
      return PaceOf(how, 0, bytes, times->ContendingTimesOf(kinds[position], bytes));
    };
  } else if (how.collective_slowdown > 1) {
    cycles.pace_of = [pace = PaceOf(how)](size_t, int64_t) { return pace; };
  }
  return cycles;
}

}  // namespace

JobGraph CollectiveJobOf(std::shared_ptr<const Program> program,
                         const std::vector<PlannedCollective>& collectives,
                         const ExpandedRing& ring, const Scenario& scenario) {
  const AllReduce& how = scenario.all_reduce();
  JobGraph job;
  job.programs.push_back(std::move(program));
  job.program_of_worker.assign(Index(scenario.workers), 0);
  job.compute_speeds = scenario.compute_speeds();
  const auto shared_times = std::make_shared<const CollectiveTimes>(scenario);
  const CollectiveTimes& times = *shared_times;
  job.joint = JointWorkOf(collectives, how.concurrent_collectives);
  for (const PlannedCollective& collective : collectives) {
    if (how.fidelity == Fidelity::kExpanded) {
      job.joint.lengths.push_back(HasRounds(collective.kind, scenario.workers)
                                      ? times.launch()
                                      : times.TimeOf(collective.kind, collective.bytes));
      job.joint.lengths.push_back({});
    } else if (how.concurrent_collectives > 1 && how.algorithm == CollectiveAlgorithm::kGloo) {
      job.joint.lengths.push_back(times.launch());
      job.joint.messages.push_back(times.MessagesOf(collective.kind, collective.bytes));
    } else {
      job.joint.lengths.push_back(
          times.TimeOf(collective.kind, collective.bytes, collective.threads));
    }
    if (how.contention.has_value() && !std::holds_alternative<Horovod>(how.fusion)) {
      job.joint.paces.push_back(
          PaceOf(how, collective.threads, collective.bytes,
                 times.ContendingTimesOf(collective.kind, collective.bytes, collective.threads)));
    } else if (how.collective_slowdown > 1 && !std::holds_alternative<Horovod>(how.fusion)) {
      job.joint.paces.push_back(PaceOf(how));
    }
  }
  if (how.fidelity == Fidelity::kExpanded) {
    job.joint.in_pairs = true;
    ConnectRing(scenario, ring, job);
  }
  if (const auto* scheduler = std::get_if<ByteScheduler>(&how.fusion))
    job.joint.priorities = PrioritiesOf(collectives, *scheduler);
  if (const auto* horovod = std::get_if<Horovod>(&how.fusion)) {
    job.joint.concurrent = static_cast<int32_t>(collectives.size());
    job.joint.cycles = CyclesOf(collectives, *horovod, how, shared_times);
  }
  if (how.overlap_slowdown > 1 && !job.joint.has_paces())
    job.overlapped_speed = SlowedLevel(how.overlap_slowdown);
  return job;
}

namespace {

// time(kind, bytes, threads): of one that has the links to itself.
template <typename Time>
double SumOfSeconds(const std::vector<PlannedCollective>& collectives, const Scenario& scenario,
                    Time time) {
  double each = 0;
  double others = 0;
  int64_t fused = 0;
  for (const PlannedCollective& collective : collectives) {
    const double seconds = ToSeconds(time(collective.kind, collective.bytes, collective.threads));
    each += seconds;
    if (collective.kind == Collective::kAllReduce) {
      fused += collective.bytes;
    } else {
      others += seconds;
    }
  }
  if (fused == 0 || !std::holds_alternative<Horovod>(scenario.all_reduce().fusion)) return each;
  return std::min(each, others + ToSeconds(time(Collective::kAllReduce, fused, 0)));
}

bool HaveOwnTimes(const AllReduce& job) {
  return !std::holds_alternative<Horovod>(job.fusion) && job.fidelity == Fidelity::kCollapsed;
}

}  // namespace

double CollectiveSeconds(const std::vector<PlannedCollective>& collectives,
                         const Scenario& scenario) {
  const CollectiveTimes times(scenario);
  return SumOfSeconds(collectives, scenario, [&](Collective kind, int64_t bytes, int32_t threads) {
    return times.TimeOf(kind, bytes, threads);
  });
}

double LoneCollectiveSeconds(const std::vector<PlannedCollective>& collectives,
                             const Scenario& scenario) {
  if (!scenario.all_reduce().contention.has_value())
    return CollectiveSeconds(collectives, scenario);
  const CollectiveTimes times(scenario);
  return SumOfSeconds(collectives, scenario, [&](Collective kind, int64_t bytes, int32_t threads) {
    return times.ContendingTimesOf(kind, bytes, threads).alone;
  });
}

double MostSavedSeconds(const std::vector<PlannedCollective>& collectives, double lone_seconds,
                        const Scenario& changed) {
  const AllReduce& job = changed.all_reduce();
  if (!HaveOwnTimes(job) || job.contention.has_value())
    return std::numeric_limits<double>::infinity();
  return job.collective_slowdown * (lone_seconds - LoneCollectiveSeconds(collectives, changed));
}

bool GoOneByOne(const Scenario& scenario) {
  const AllReduce& job = scenario.all_reduce();
  return HaveOwnTimes(job) && job.concurrent_collectives == 1;
}

LinkPlace BindingLinks(const std::vector<PlannedCollective>& collectives,
                       const Scenario& scenario) {
  const int32_t per_node = scenario.all_reduce().workers_per_node;
  if (scenario.workers == 1 || per_node == 1) return LinkPlace::kBetweenNodes;
  const auto seconds_with = [&](LinkPlace place) {
    return CollectiveSeconds(collectives, WithLinkRates(scenario, place, 2));
  };
  return scenario.workers <= per_node ||
                 seconds_with(LinkPlace::kInsideNodes) < seconds_with(LinkPlace::kBetweenNodes)
             ? LinkPlace::kInsideNodes
             : LinkPlace::kBetweenNodes;
}

bool CollectivesStartFree(const Scenario& scenario) {
  constexpr double kHardlyAny = 1e-6;
  return !scenario.has_servers() && scenario.workers > 1 &&
         ToSeconds(CollectiveTimes(scenario).TimeOf(Collective::kAllReduce, 1)) < kHardlyAny;
}

}  // namespace stepcast
