// An LRU cache, bounded by bytes, of runs of the engine that were made for earlier calls.
//
// Threads: safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "core/predict/run_memory.h"
#include "core/predict/run_summary.h"
#include "server/base/bounded_cache.h"

namespace stepcast::server {

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
