// A memory of runs that forgets nothing and counts what it is asked.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/predict/run_memory.h"

namespace stepcast::testing {

class KeptRuns final : public RunMemory {
 public:
  std::shared_ptr<const RunSummary> Find(const std::string& key) override {
    const auto found = runs_.find(key);
    found == runs_.end() ? ++misses : ++hits;
    return found == runs_.end() ? nullptr : found->second;
  }
  void Keep(const std::string& key, std::shared_ptr<const RunSummary> run) override {
    runs_[key] = std::move(run);
  }

  size_t size() const { return runs_.size(); }

  int hits = 0;
  int misses = 0;

 private:
  std::map<std::string, std::shared_ptr<const RunSummary>> runs_;
};

}  // namespace stepcast::testing
