// The bytes of all requests that the server holds at one time, and their limit.
//
// Each request is bounded by itself; this bounds their sum, so that many large ones together cannot
// exhaust the memory. Threads: safe, without locks.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace stepcast::server {

class ByteBudget {
 public:
  explicit ByteBudget(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // From now on; what is held already is held.
  void SetMax(int64_t max_bytes) { max_bytes_ = max_bytes; }
  int64_t max() const { return max_bytes_; }

  // A part of the budget; gives it back when destroyed. One owner, no threads.
  class Share {
   public:
    explicit Share(ByteBudget& budget) : budget_(budget) {}
    ~Share() { Release(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // RESOURCE_EXHAUSTED, reason MEMORY_EXHAUSTED, with RetryInfo and the limit as quota subject,
    // if `bytes` more are not there.
    absl::Status Add(int64_t bytes);
    void Release();
    int64_t bytes() const { return bytes_; }

   private:
    ByteBudget& budget_;
    int64_t bytes_ = 0;
  };

 private:
  std::atomic<int64_t> max_bytes_;
  std::atomic<int64_t> bytes_{0};
};

}  // namespace stepcast::server
