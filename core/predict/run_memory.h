// A memory of runs that were made before, and the keys by which it knows them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/run_summary.h"

namespace stepcast {

// The key of a run, as bytes: all that it depends on, so runs of equal keys are equal.
//
// Complete by construction: a scenario, a pipeline or options with one more field do not compile
// here until it is said whether a run depends on it.
// Threads: pure functions.
// Length: some 200 bytes, and the names of explicit priorities.

// Prefix of all runs of a scenario: its order and what fixes its ranks, the options that touch a
// run, the engine's version. Replications, precision, time budget and confidence level do not: they
// say how many runs are made and what is made of them.
std::string RunKeyPrefix(std::string_view profile_digest, const Scenario& scenario,
                         const SimulationOptions& options);

// The key of the replication with that index.
std::string RunKeyOf(std::string_view prefix, int32_t replication);

// The key of a run of another kind than the replication whose key is given.
std::string RunKeyOfKind(std::string_view key, std::string_view kind);

// A memo of runs that were made before, by whoever computes: a run is the same whenever it is made
// again, so it need not be.
//
// An answer has the same bytes with any memory and with none, but for
// SimulationStatistics::recalled_runs. Threads: asked by all that compute, at once.
class RunMemory {
 public:
  virtual ~RunMemory() = default;
  // The run that was kept under a key of RunKeyOf; null where none was, or where it has been
  // dropped since.
  virtual std::shared_ptr<const RunSummary> Find(const std::string& key) = 0;
  // The run of a key that Find did not find, where it has come since. By default none has.
  virtual std::shared_ptr<const RunSummary> FindAgain(const std::string& /*key*/) {
    return nullptr;
  }
  // May keep it or not, and drop anything at any time.
  virtual void Keep(const std::string& key, std::shared_ptr<const RunSummary> run) = 0;
};

// An observer of how much was simulated, told as runs end. Threads: any, several at once.
class RunCounter {
 public:
  virtual ~RunCounter() = default;
  virtual void Add(int64_t simulated_operations) = 0;
};

// A memory that a computation may use, and what it knows the profile by.
struct KnownRuns {
  RunMemory* memory = nullptr;    // null: none
  std::string profile_digest;     // differs wherever anything in the profile that a run depends on
                                  // does; REQUIRES: not empty where there is a memory
  RunCounter* counter = nullptr;  // of the runs that are made; null: nobody wants to know

  // The run of that key: the one that is kept, or what `make` makes, which is then counted and
  // kept. `was_asked`: the memory did not find it. Without a memory the key may be empty. Failure:
  // as `make`. Threads: safe.
  absl::StatusOr<std::shared_ptr<const RunSummary>> Once(
      const std::string& key, absl::FunctionRef<absl::StatusOr<RunSummary>()> make,
      bool was_asked = false) const;
  // Executor::ForEach of parts that make their runs with Once.
  void ForEach(const Executor& executor, size_t count, absl::FunctionRef<bool(size_t)> part) const {
    memory == nullptr ? executor.ForEachHere(count, part) : executor.ForEach(count, part);
  }
};

}  // namespace stepcast
