// A computation that several replicas make together: an executor and a memory of runs.
//
// Every replica that takes part makes the whole computation, from the same request, and comes to
// the same loops. Parts of a long loop are cut into shards; each replica takes some, and finds the
// runs of the others' in the store. A run is known by all that it depends on (RunKeyOf), so an
// answer has the same bits however many take part, and whatever is lost on the way: what is not
// found is made. A replica that is gone costs the shard that it had. Memory: kMaxBytes of runs that
// are kept. Threads: safe, as an executor is: one thread makes the computation, and parts may call
// ForEach from others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/predict/run_memory.h"
#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/store/operation_store.h"

namespace stepcast::server {

class SharedWork final : public Executor, public RunMemory {
 public:
  static constexpr size_t kMaxBytes = size_t{256} << 20;
  static constexpr size_t kMaxShardBytes = size_t{8} << 20;

  // The surroundings, which outlive it.
  struct Environment {
    ShardStore& store;
    const Executor& executor;  // on this replica
    const Clock& clock;
    StopCheck stop;  // asked while others are waited for
  };
  // The computation of an operation; `helps`: another replica will bring its end.
  SharedWork(const Environment& environment, std::string operation, bool helps);

  void ForEach(size_t count, absl::FunctionRef<bool(size_t)> part) const override;
  void ForEachHere(size_t count, absl::FunctionRef<bool(size_t)> part) const override {
    environment_.executor.ForEachHere(count, part);
  }
  std::shared_ptr<const RunSummary> Find(const std::string& key) override;
  std::shared_ptr<const RunSummary> FindAgain(const std::string& key) override { return Find(key); }
  void Keep(const std::string& key, std::shared_ptr<const RunSummary> run) override;

  // True if it helps with an operation that does not run any more.
  bool IsOver() const { return is_over_; }
  // Operations of the runs that others have made, as far as they were read here.
  int64_t foreign_operations() const { return foreign_operations_; }

 private:
  class Loop;

  bool IsLong() const;
  void Record(const std::string& key, const std::shared_ptr<const std::string>& bytes);
  void StartRecording() const;
  void StopRecording() const;
  // All runs that were found or kept since, or since they were taken last.
  std::string TakeRecorded() const;
  void KeepAll(const std::string& bytes) const;

  const Environment environment_;
  const std::string operation_;
  const bool helps_;
  const int64_t began_ns_;
  mutable BoundedCache<std::string> runs_;
  mutable std::atomic<bool> is_inside_{false};  // a loop, whose parts may have loops of their own
  mutable std::atomic<bool> is_over_{false};
  // By the thread that makes the computation.
  mutable int64_t loops_ = 0;
  mutable int64_t longest_shard_ns_ = 0;
  mutable double seconds_of_part_ = 0;  // of late
  mutable Mutex mutex_;
  // Runs, by key; where they are recorded.
  mutable std::optional<std::unordered_map<std::string, std::shared_ptr<const std::string>>>
      recorded_ STEPCAST_GUARDED_BY(mutex_);
  mutable std::atomic<int64_t> foreign_operations_{0};
};

}  // namespace stepcast::server
