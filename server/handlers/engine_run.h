// One run of the engine for one request: keeps its time budget, times it, and reports it.
//
// Threads: it may be made on one thread and run on another; the check it hands on may be asked by
// several at once if `stop` may.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/predict/run_memory.h"
#include "core/predict/run_summary.h"
#include "core/predict/throughput.h"
#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/convert/prediction_requests.h"
#include "server/handlers/simulation_observer.h"

namespace stepcast::server {

class EngineRun {
 public:
  struct Environment {
    const Clock& clock;
    SimulationObserver* observer = nullptr;  // may be null
    SimulatedWork work;
  };

  // The time budget of the options counts from here.
  EngineRun(const Environment& environment, AnswerContext context);

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
