#include "core/allocate/allocation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/base/error.h"

namespace stepcast {

namespace {

JobShare ShareAt(const AllocationJob& job, const ThroughputCurve& curve, int32_t workers,
                 int32_t servers, double one_worker_examples_per_second) {
  const CurveValue value = curve.At(workers, servers);
  JobShare share{.workers = workers,
                 .servers = servers,
                 .examples_per_second = value.examples_per_second,
                 .interpolated = value.interpolated};
  double rate = value.examples_per_second;
  if (job.remaining_examples > 0) {
    const auto examples = static_cast<double>(job.remaining_examples);
    const bool rescaled = job.current_workers > 0 &&
                          (workers != job.current_workers || servers != job.current_servers);
    share.duration_seconds = examples / rate + (rescaled ? job.rescale_seconds : 0);
    rate = examples / *share.duration_seconds;
  }
  share.speedup = rate / one_worker_examples_per_second;
  share.utility = job.weight * share.speedup;
  share.deviation = share.utility * value.deviation / value.examples_per_second;
  return share;
}

}  // namespace

std::vector<JobShare> SharesOf(const AllocationJob& job, const ThroughputCurve& curve,
                               double one_worker_examples_per_second) {
  std::vector<JobShare> shares;
  if (job.may_rest) shares.emplace_back();
  for (const Scenario& choice : job.server_choices) {
    for (const int32_t workers : job.worker_counts) {
      shares.push_back(
          ShareAt(job, curve, workers, choice.server_count(), one_worker_examples_per_second));
    }
  }
  return shares;
}

double MeritOf(const JobShare& share, const AllocationJob& job, AllocationObjective objective) {
  if (objective == AllocationObjective::kTotalUtility) return share.utility;
  if (objective == AllocationObjective::kMaxMinFair) return share.speedup / job.weight;
  return share.duration_seconds ? -*share.duration_seconds
                                : -std::numeric_limits<double>::infinity();
}

namespace {

constexpr size_t kManyJobs = 8;

// The outcome of one capacity.
struct Outcome {
  std::vector<JobShare> shares;  // by job; nothing where it has an error
  double total_utility = 0;
  double objective_value = 0;
};

// True if it concerns all jobs, not the one whose simulation met it: whatever code a check has that
// stops, it goes on to say it.
bool EndsTheCall(const absl::Status& status, StopCheck stop) {
  return !status.ok() && stop().code() == status.code();
}

// The jobs that could be simulated, and what they may get.
class Contest {
 public:
  explicit Contest(const AllocationQuery& query) : query_(query), shares_(query.jobs.size()) {
    if (!query.capacity.devices.has_value()) return;
    unit_ = 0;
    for (const absl::StatusOr<AllocationJob>& job : query.jobs)
      if (job.ok()) unit_ = std::gcd(unit_, job->devices_per_worker);
    unit_ = std::max<int64_t>(unit_, 1);
  }

  // Workers of a job in the unit of the capacity: workers or devices.
  int64_t CountedOf(size_t job, int32_t workers) const {
    return query_.capacity.devices.has_value() ? workers * query_.jobs[job]->devices_per_worker
                                               : workers;
  }

  int64_t capacity() const { return query_.capacity.devices.value_or(query_.capacity.workers); }

  // The smallest worker of any job, in the same unit.
  int64_t OneMore() const {
    if (!query_.capacity.devices.has_value()) return 1;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < shares_.size(); ++i)
      if (!shares_[i].empty()) least = std::min(least, query_.jobs[i]->devices_per_worker);
    return least == std::numeric_limits<int64_t>::max() ? 1 : least;
  }

  absl::Status Simulate(StopCheck stop, const Executor& executor, AllocationAnswer& answer) {
    std::vector<absl::StatusOr<JobCurve>> curves(query_.jobs.size(),
                                                 absl::CancelledError("not begun"));
    // The points of few jobs are more parts than the jobs.
    const InOrder one_by_one;
    const Executor& of_jobs = curves.size() < kManyJobs ? one_by_one : executor;
    of_jobs.ForEach(curves.size(), [&](size_t i) {
      curves[i] = query_.jobs[i].ok()
                      ? SimulateCurve(*query_.jobs[i], query_.options, stop, executor)
                      : query_.jobs[i].status();
      return !query_.jobs[i].ok() || !EndsTheCall(curves[i].status(), stop);
    });
    for (size_t i = 0; i < query_.jobs.size(); ++i) {
      JobAllocation& job = answer.jobs.emplace_back();
      job.status = query_.jobs[i].status();
      if (!job.status.ok()) continue;
      const absl::StatusOr<JobCurve>& curve = curves[i];
      if (EndsTheCall(curve.status(), stop)) return curve.status();
      job.status = curve.status();
      if (!job.status.ok()) continue;
      job.curve = curve->curve.points();
      job.warnings = curve->warnings;
      job.assumptions = curve->assumptions;
      answer.simulation.Add(curve->simulation);
      shares_[i] = SharesOf(*query_.jobs[i], curve->curve, curve->one_worker_examples_per_second);
    }
    return absl::OkStatus();
  }

  // The first share of each is its least in both: see SharesOf.
  std::string InfeasibleReason() const {
    int64_t workers = 0;
    int64_t servers = 0;
    for (size_t i = 0; i < shares_.size(); ++i) {
      if (shares_[i].empty()) continue;
      workers += CountedOf(i, shares_[i].front().workers);
      servers += shares_[i].front().servers;
    }
    std::vector<std::string> reasons;
    AddShortage(query_.capacity.devices.has_value() ? "capacity.devices" : "capacity.workers",
                capacity(), workers, reasons);
    if (query_.capacity.servers)
      AddShortage("capacity.parameter_servers", *query_.capacity.servers, servers, reasons);
    return absl::StrJoin(reasons, "; ");
  }

  // `counted`: workers, or devices, whichever the capacity counts. REQUIRES: the minimums fit.
  absl::StatusOr<Outcome> Share(int64_t counted, StopCheck stop) const {
    std::vector<Claim> claims;
    for (size_t i = 0; i < shares_.size(); ++i) {
      if (!shares_[i].empty()) claims.push_back(ClaimOf(i));
    }
    const MeritRule rule = query_.objective == AllocationObjective::kTotalUtility
                               ? MeritRule::kTotal
                               : MeritRule::kMinFirst;
    const ClusterCapacity capacity{.workers = static_cast<int32_t>(counted / unit_),
                                   .servers = query_.capacity.servers};
    const auto chosen = ShareExactly(claims, capacity, rule, stop);
    if (!chosen.ok()) return chosen.status();
    Outcome outcome;
    size_t claim = 0;
    for (const std::vector<JobShare>& shares : shares_) {
      outcome.shares.push_back(shares.empty() ? JobShare{} : shares[(**chosen)[claim++]]);
      outcome.total_utility += outcome.shares.back().utility;
    }
    outcome.objective_value = ValueOf(outcome);
    return outcome;
  }

  // The certainty of an outcome's total utility among exchanges between two jobs.
  Settled HowSettled(const Outcome& outcome) const {
    std::vector<Exchange> gives;
    std::vector<Exchange> takes;
    for (size_t i = 0; i < shares_.size(); ++i) {
      AddExchange(i, outcome.shares[i], false, gives);
      AddExchange(i, outcome.shares[i], true, takes);
    }
    std::sort(gives.begin(), gives.end(),
              [](const Exchange& a, const Exchange& b) { return a.utility > b.utility; });
    int64_t spare = query_.capacity.servers.value_or(0);
    for (const JobShare& share : outcome.shares) spare -= share.servers;
    std::vector<Alternative> alternatives = {{.value = outcome.total_utility}};
    for (const Exchange& take : takes) {
      // From whom it costs least.
      const auto from = std::find_if(gives.begin(), gives.end(), [&](const Exchange& give) {
        return give.job != take.job && give.counted >= take.counted &&
               (!query_.capacity.servers || take.servers + give.servers <= spare);
      });
      // An exchange between jobs that are alike changes nothing.
      if (from == gives.end() || take.utility == -from->utility) continue;
      alternatives.push_back({.value = outcome.total_utility + take.utility + from->utility,
                              .deviation = std::hypot(take.deviation, from->deviation)});
    }
    return stepcast::HowSettled(alternatives, 0);
  }

 private:
  // A job's step to its next larger or smaller share.
  struct Exchange {
    size_t job = 0;
    int64_t counted = 0;  // workers or devices that it takes or gives
    int64_t servers = 0;  // that it takes; below 0: gives
    double utility = 0;   // that it gains; of a smaller share below 0
    double deviation = 0;
  };

  void AddExchange(size_t job, const JobShare& now, bool larger,
                   std::vector<Exchange>& exchanges) const {
    const JobShare* next = nullptr;
    for (const JobShare& share : shares_[job]) {
      if (share.workers > 0 && now.workers > 0 && share.servers != now.servers) continue;
      if (larger ? share.workers <= now.workers : share.workers >= now.workers) continue;
      if (next == nullptr ||
          std::abs(share.workers - now.workers) < std::abs(next->workers - now.workers))
        next = &share;
    }
    if (next == nullptr) return;
    exchanges.push_back({.job = job,
                         .counted = CountedOf(job, std::abs(next->workers - now.workers)),
                         .servers = next->servers - now.servers,
                         .utility = next->utility - now.utility,
                         .deviation = std::hypot(next->deviation, now.deviation)});
  }

  static void AddShortage(const char* what, int64_t there, int64_t needed,
                          std::vector<std::string>& reasons) {
    if (needed <= there) return;
    reasons.push_back(absl::StrCat(what, ": the jobs' minimums need ", needed, ", which is ",
                                   needed - there, " more than the ", there, " there are"));
  }

  Claim ClaimOf(size_t job) const {
    Claim claim;
    for (const JobShare& share : shares_[job]) {
      claim.push_back({.workers = static_cast<int32_t>(CountedOf(job, share.workers) / unit_),
                       .servers = share.servers,
                       .merit = MeritOf(share, *query_.jobs[job], query_.objective)});
    }
    return claim;
  }

  double ValueOf(const Outcome& outcome) const {
    if (query_.objective == AllocationObjective::kTotalUtility) return outcome.total_utility;
    std::optional<double> value;
    for (size_t i = 0; i < shares_.size(); ++i) {
      if (shares_[i].empty()) continue;
      const JobShare& share = outcome.shares[i];
      if (query_.objective == AllocationObjective::kMaxMinFair) {
        const double merit = MeritOf(share, *query_.jobs[i], query_.objective);
        value = std::min(value.value_or(merit), merit);
      } else if (share.duration_seconds) {
        value = std::max(value.value_or(0), *share.duration_seconds);
      }
    }
    return value.value_or(0);
  }

  const AllocationQuery& query_;
  int64_t unit_ = 1;                           // by which what is counted is searched
  std::vector<std::vector<JobShare>> shares_;  // by job; empty where it has an error
};

absl::Status CheckPoints(const AllocationQuery& query) {
  int64_t points = 0;
  for (const absl::StatusOr<AllocationJob>& job : query.jobs) {
    if (job.ok()) points += PointsOf(*job);
  }
  if (points <= kMaxAllocationPoints) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat(
          "the jobs' curves have ", points,
          " points, which is above the limit max_allocation_points = ", kMaxAllocationPoints),
      {.reason = "ALLOCATION_TOO_LARGE", .metadata = {{"points", absl::StrCat(points)}}});
}

// One number cannot say what is left for workers that are made of unlike numbers of devices.
absl::Status CheckCounting(const AllocationQuery& query) {
  if (query.capacity.devices.has_value()) return absl::OkStatus();
  std::optional<size_t> first;
  for (size_t i = 0; i < query.jobs.size(); ++i) {
    if (!query.jobs[i].ok()) continue;
    if (!first.has_value()) first = i;
    const int64_t one = query.jobs[*first]->devices_per_worker;
    const int64_t other = query.jobs[i]->devices_per_worker;
    if (one == other) continue;
    const auto devices = [](int64_t count) {
      return absl::StrCat(count, count == 1 ? " device" : " devices");
    };
    return FaultsError("REQUEST_INVALID",
                       {{"capacity.workers",
                         absl::StrCat(query.capacity.workers, " workers, and those of jobs[",
                                      *first, "] are ", devices(one), ", those of jobs[", i, "] ",
                                      devices(other), ": give capacity.devices in their place")}});
  }
  return absl::OkStatus();
}

OneMoreWorker Compare(const Outcome& now, const Outcome& then) {
  OneMoreWorker more{.utility_gain = then.total_utility - now.total_utility,
                     .objective_gain = then.objective_value - now.objective_value};
  for (size_t i = 0; i < now.shares.size(); ++i) {
    const JobShare& share = then.shares[i];
    if (share.workers == now.shares[i].workers && share.servers == now.shares[i].servers) continue;
    more.changes.push_back({.job = i, .workers = share.workers, .servers = share.servers});
  }
  return more;
}

// The end of the job's own choices that holds it back, where the cluster's capacity does not.
ChoiceEdge EdgeOf(const AllocationJob& job, int32_t workers) {
  const std::vector<int32_t>& counts = job.worker_counts;
  if (workers == 0) return ChoiceEdge::kNone;
  if (counts.size() == 1 && !job.may_rest && !job.cut_by_capacity) return ChoiceEdge::kOnlyChoice;
  if (workers == counts.back() && !job.cut_by_capacity) return ChoiceEdge::kLargestAsked;
  return workers == counts.front() && workers > 1 && !job.may_rest ? ChoiceEdge::kSmallestAsked
                                                                   : ChoiceEdge::kNone;
}

}  // namespace

absl::StatusOr<AllocationAnswer> AllocateWorkers(const AllocationQuery& query, StopCheck stop,
                                                 const Executor& executor) {
  if (absl::Status status = CheckCounting(query); !status.ok()) return status;
  if (absl::Status status = CheckPoints(query); !status.ok()) return status;
  AllocationAnswer answer;
  Contest contest(query);
  if (absl::Status status = contest.Simulate(stop, executor, answer); !status.ok()) return status;
  answer.infeasible_reason = contest.InfeasibleReason();
  if (!answer.infeasible_reason.empty()) return answer;
  // The curves were what took long: a budget that is spent now is no reason to throw them away.
  const auto stop_or_spent = [&] {
    absl::Status status = stop();
    return IsTimeBudgetSpent(status) ? absl::OkStatus() : status;
  };
  const absl::StatusOr<Outcome> now = contest.Share(contest.capacity(), stop_or_spent);
  if (!now.ok()) return now.status();
  const absl::StatusOr<Outcome> then =
      contest.Share(contest.capacity() + contest.OneMore(), stop_or_spent);
  if (!then.ok()) return then.status();
  for (size_t i = 0; i < answer.jobs.size(); ++i) {
    answer.jobs[i].share = now->shares[i];
    if (query.jobs[i].ok())
      answer.jobs[i].workers_edge = EdgeOf(*query.jobs[i], now->shares[i].workers);
    answer.workers += now->shares[i].workers;
    answer.servers += now->shares[i].servers;
    if (query.jobs[i].ok())
      answer.devices += now->shares[i].workers * query.jobs[i]->devices_per_worker;
  }
  answer.total_utility = now->total_utility;
  answer.objective_value = now->objective_value;
  answer.one_more_worker = Compare(*now, *then);
  if (query.objective == AllocationObjective::kTotalUtility)
    answer.settled = contest.HowSettled(*now);
  if (query.capacity.devices.has_value()) answer.one_more_worker.devices = contest.OneMore();
  return answer;
}

}  // namespace stepcast
