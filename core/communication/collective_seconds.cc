#include "core/communication/collective_seconds.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "core/communication/collective_time.h"

namespace stepcast {

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

}  // namespace stepcast
