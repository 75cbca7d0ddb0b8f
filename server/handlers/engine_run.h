// Runs of the engine for requests, and those who are told of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/predict/run_memory.h"
#include "core/predict/run_summary.h"
#include "core/predict/throughput.h"
#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/convert/prediction_requests.h"

namespace stepcast::server {

// The ways in which the jobs of a call exchange their updates; kPipeline where all-reducing workers
// are replicas of a pipeline, kBoth where a call has scenarios of several ways.
enum class Communication : unsigned char { kParameterServers, kAllReduce, kBoth, kPipeline };
inline constexpr Communication kCommunications[] = {Communication::kParameterServers,
                                                    Communication::kAllReduce, Communication::kBoth,
                                                    Communication::kPipeline};

// Kinds of jobs that a method simulates, a bit a Communication.
using JobKinds = unsigned;
constexpr JobKinds KindBit(Communication communication) {
  return 1U << static_cast<unsigned>(communication);
}
inline constexpr JobKinds kNothingSimulated = 0;
inline constexpr JobKinds kOfServers = KindBit(Communication::kParameterServers);
inline constexpr JobKinds kOfAllReduces = KindBit(Communication::kAllReduce);
inline constexpr JobKinds kOfPipelines = KindBit(Communication::kPipeline);
// Any one of them: only a cluster or a list of scenarios has jobs of several.
inline constexpr JobKinds kOneKind = kOfServers | kOfAllReduces | kOfPipelines;
inline constexpr JobKinds kAllKinds = kOneKind | KindBit(Communication::kBoth);

struct SimulatingMethod {
  std::string_view name;
  JobKinds kinds = kNothingSimulated;
};

// A computation: the method of its call, and the kind of job.
struct SimulatedWork {
  std::string_view method;  // of a SimulatingMethod
  Communication communication = Communication::kParameterServers;
};

// An observer of every computation behind a prediction. For metrics.
class SimulationObserver {
 public:
  virtual ~SimulationObserver() = default;
  // Threads: called by any.
  virtual void OnSimulation(const SimulatedWork& work, absl::StatusCode code, double seconds,
                            int64_t simulated_operations) = 0;
  // So many predictions of an answer had not reached their steady state.
  virtual void OnUnsteady(const SimulatedWork& work, int64_t predictions) = 0;
};

// From a call before, or from one under way.
enum class SharedFrom : unsigned char { kCache, kFlight };

// An observer of answers that were computed for another call. For metrics.
class SharingObserver {
 public:
  virtual ~SharingObserver() = default;
  // `method` is of a SimulatingMethod. Threads: called by any.
  virtual void OnShared(std::string_view method, SharedFrom from) = 0;
};

// One run of the engine for one request: keeps its time budget, times it, and reports it.
//
// Threads: it may be made on one thread and run on another; the check it hands on may be asked by
// several at once if `stop` may.
class EngineRun {
 public:
  struct Environment {
    const Clock& clock;
    SimulationObserver* observer = nullptr;  // may be null
    SimulatedWork work;
  };

  // The time budget of the options counts from here.
  EngineRun(const Environment& environment, AnswerContext context);

  // Nothing of it is reported: another server does.
  void CountNothing() { environment_.observer = nullptr; }

  // Calls `compute` with a check that is `stop` and, once the budget is spent, TimeBudgetSpent().
  // Its answer gets the context, with the seconds taken and whether the budget was spent.
  template <typename Answer, typename Compute>
  absl::StatusOr<Answer> Do(StopCheck stop, Compute compute) {
    std::atomic<bool> is_cut_short{false};
    const auto stop_or_spent = [&] {
      absl::Status status = Check(stop);
      if (IsTimeBudgetSpent(status)) is_cut_short = true;
      return status;
    };
    const int64_t start_ns = environment_.clock.MonotonicNs();
    auto answer = compute(stop_or_spent);
    context_.engine_seconds =
        static_cast<double>(environment_.clock.MonotonicNs() - start_ns) * 1e-9;
    Report(answer.status(), answer.ok() ? answer->simulation.simulated_operations : 0);
    if (!answer.ok()) return answer.status();
    if constexpr (requires { answer->predictions; }) ReportUnsteady(answer->predictions);
    context_.is_cut_short = is_cut_short;
    return Answer{.answer = *std::move(answer), .context = std::move(context_)};
  }

 private:
  absl::Status Check(StopCheck stop) const;
  void ReportUnsteady(const std::vector<Prediction>& predictions) const;
  void Report(const absl::Status& status, int64_t simulated_operations) const;

  Environment environment_;
  AnswerContext context_;
  int64_t budget_end_ns_;
};

// An LRU cache, bounded by bytes, of runs of the engine that were made for earlier calls.
//
// Threads: safe.
class RunCache final : public RunMemory {
 public:
  // `observer` is borrowed; may be null.
  explicit RunCache(size_t max_bytes, CacheObserver* observer = nullptr)
      : runs_(max_bytes, observer) {}

  std::shared_ptr<const RunSummary> Find(const std::string& key) override {
    return runs_.Find(key);
  }
  void Keep(const std::string& key, std::shared_ptr<const RunSummary> run) override {
    const size_t bytes = run->bytes();
    runs_.Keep(key, std::move(run), bytes);
  }

 private:
  BoundedCache<RunSummary> runs_;
};

}  // namespace stepcast::server
