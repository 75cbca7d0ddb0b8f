// A store of shards for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/random.h"
#include "server/base/mutex.h"
#include "server/store/operation_store.h"

namespace stepcast::server {

// The shards of one operation, in memory. It may fail and garble, and hands a shard out twice.
class ShardBoard final : public ShardStore {
 public:
  absl::StatusOr<ShardPlan> Open(const ShardLoop& loop, const ShardPlan& offered) override {
    MutexLock lock(mutex_);
    if (is_over) return absl::NotFoundError("over");
    if (Fails()) return absl::UnavailableError("away");
    if (forced.has_value()) return *forced;
    Loop& opened = loops_[loop.number];
    if (opened.shards.empty()) {
      opened.plan = offered;
      opened.shards.resize(static_cast<size_t>(offered.shards));
    }
    return opened.plan;
  }
  absl::StatusOr<std::optional<int64_t>> Take(const ShardLoop& loop, int64_t) override {
    MutexLock lock(mutex_);
    if (Fails()) return absl::UnavailableError("away");
    std::vector<Shard>& shards = loops_[loop.number].shards;
    const auto next = std::min_element(shards.begin(), shards.end(), [](const auto& a, auto& b) {
      return std::pair(a.is_finished, a.taken) < std::pair(b.is_finished, b.taken);
    });
    if (next->is_finished || (loses && next == shards.begin())) return std::optional<int64_t>();
    ++next->taken;
    return next - shards.begin() + off;
  }
  absl::Status Finish(const ShardLoop& loop, int64_t shard, std::string_view bytes) override {
    MutexLock lock(mutex_);
    if (Fails()) return absl::UnavailableError("away");
    Shard& finished = loops_[loop.number].shards[static_cast<size_t>(shard)];
    if (!finished.is_finished) finished.bytes = std::string(bytes);
    finished.is_finished = true;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<int64_t>> Finished(const ShardLoop& loop) override {
    MutexLock lock(mutex_);
    if (Fails()) return absl::UnavailableError("away");
    std::vector<int64_t> finished;
    const std::vector<Shard>& shards = loops_[loop.number].shards;
    for (size_t i = 0; i < shards.size(); ++i)
      if (shards[i].is_finished) finished.push_back(static_cast<int64_t>(i));
    return finished;
  }
  absl::StatusOr<std::string> Read(const ShardLoop& loop, int64_t shard) override {
    MutexLock lock(mutex_);
    if (Fails()) return absl::UnavailableError("away");
    const std::string& bytes = loops_[loop.number].shards[static_cast<size_t>(shard)].bytes;
    return garbles ? bytes.substr(0, bytes.size() / 2) : bytes;
  }
  absl::StatusOr<std::optional<Shared>> FindToHelp(
      const std::string&, const std::vector<std::string_view>& but) override {
    if (to_help.has_value() && std::find(but.begin(), but.end(), to_help->operation) != but.end())
      return std::optional<Shared>();
    return to_help;
  }
  absl::StatusOr<ShardCounts> CountShards() override { return counts; }

  std::optional<Shared> to_help;
  ShardCounts counts;
  std::optional<ShardPlan> forced;  // of every loop
  int64_t off = 0;                  // that shards are told
  bool loses = false;               // the first shard: nobody gets it
  bool is_over = false;
  bool garbles = false;
  int one_in_fails = 0;  // of all calls; 0: none

  size_t loops() {
    MutexLock lock(mutex_);
    return loops_.size();
  }

 private:
  struct Shard {
    int taken = 0;
    bool is_finished = false;
    std::string bytes;
  };
  struct Loop {
    ShardPlan plan;
    std::vector<Shard> shards;
  };

  bool Fails() STEPCAST_REQUIRES(mutex_) {
    return one_in_fails > 0 && random_.Below(static_cast<uint64_t>(one_in_fails)) == 0;
  }

  Mutex mutex_;
  std::map<int64_t, Loop> loops_ STEPCAST_GUARDED_BY(mutex_);
  Random random_ STEPCAST_GUARDED_BY(mutex_){std::initializer_list<uint64_t>{3}};
};

}  // namespace stepcast::server
