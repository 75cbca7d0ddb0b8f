// A memo of runs that were made before, by whoever computes: a run is the same whenever it is made
// again, so it need not be.
//
// An answer has the same bytes with any memory and with none, but for
// SimulationStatistics::recalled_runs. Threads: one computation asks from one thread at a time;
// several computations may ask at once, so what serves several must be safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/predict/run_summary.h"

namespace stepcast {

class RunMemory {
 public:
  virtual ~RunMemory() = default;
  // The run that was kept under a key of RunKeyOf; null where none was, or where it has been
  // dropped since.
  virtual std::shared_ptr<const RunSummary> Find(const std::string& key) = 0;
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
};

}  // namespace stepcast
