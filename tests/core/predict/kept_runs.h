// A memory of runs that forgets nothing, counts what it finds, and keeps runs as other processes
// get them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/predict/run_memory.h"
#include "core/predict/run_summary.h"

namespace stepcast::testing {

class KeptRuns final : public RunMemory {
 public:
  std::shared_ptr<const RunSummary> Find(const std::string& key) override {
    const auto found = runs_.find(key);
    if (found == runs_.end()) return nullptr;
    const bool is_of_change = key.ends_with("short") || key.ends_with("paired");
    ++(is_of_change ? hits_of_changes : hits);
    return found->second;
  }
  void Keep(const std::string& key, std::shared_ptr<const RunSummary> run) override {
    runs_[key] = RunOfBytes(BytesOf(*run));
  }

  size_t size() const { return runs_.size(); }

  int hits = 0;
  int hits_of_changes = 0;

 private:
  std::map<std::string, std::shared_ptr<const RunSummary>> runs_;
};

}  // namespace stepcast::testing
