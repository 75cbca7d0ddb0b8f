// The shards of operations that run: parts of one computation that several replicas share, and what
// came of each.
//
// A computation makes its loops one after the other, the same on every replica, so a loop is known
// by its number. Whoever comes to a loop first says how it is cut. What is written is only ever a
// help: it may be missing, or be written twice, and the same bytes come of it. Bytes that are not
// those that were written are DATA_LOSS, reason STORE_CORRUPT. Rows go with the end
// of their operation. Threads: safe; calls may block. Failure: those of the medium as in
// ProfileStore; NOT_FOUND, reason OPERATION_NOT_FOUND, where the operation does not run any more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepcast::server {

struct ShardLoop {
  std::string operation;
  int64_t number = 0;
};

// The parts from `first` to `count` - 1, in that many shards of about as many parts each.
struct ShardPlan {
  int64_t first = 0;
  int64_t count = 0;
  int64_t shards = 0;

  // The first part of a shard, from 0; of `shards`: count.
  int64_t Begin(int64_t shard) const { return first + (count - first) * shard / shards; }
};

// Of all operations.
struct ShardCounts {
  int64_t waiting = 0;  // that nobody has taken
  int64_t open = 0;     // that are not finished, those included
};

class ShardStore {
 public:
  virtual ~ShardStore() = default;

  // The plan of that loop: the first that anyone offered. REQUIRES: 0 <= first < count; shards from
  // 1 to count - first.
  virtual absl::StatusOr<ShardPlan> Open(const ShardLoop& loop, const ShardPlan& offered) = 0;
  // Takes a shard that nobody has taken, or else one that was taken `patience_ns` ago and is not
  // finished: whoever has it may be slow, or gone. None: nothing is to be done.
  virtual absl::StatusOr<std::optional<int64_t>> Take(const ShardLoop& loop,
                                                      int64_t patience_ns) = 0;
  // The first bytes of a shard stay.
  virtual absl::Status Finish(const ShardLoop& loop, int64_t shard, std::string_view bytes) = 0;
  // Those that are finished, ascending.
  virtual absl::StatusOr<std::vector<int64_t>> Finished(const ShardLoop& loop) = 0;
  // REQUIRES: it is finished.
  virtual absl::StatusOr<std::string> Read(const ShardLoop& loop, int64_t shard) = 0;

  // The first operation that another replica runs and that has shards which nobody has taken, but
  // those named.
  struct Shared {
    std::string operation;
    std::string request;
  };
  virtual absl::StatusOr<std::optional<Shared>> FindToHelp(
      const std::string& replica, const std::vector<std::string_view>& but) = 0;
  virtual absl::StatusOr<ShardCounts> CountShards() = 0;
};

}  // namespace stepcast::server
