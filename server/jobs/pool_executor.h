// An executor that runs parts on the calling thread and on what a job pool has idle.
//
// A helper is asked for before each part, by whoever runs it, so that threads which fall idle later
// join in too. Helpers leave between two parts while the pool has more jobs than threads for them;
// the calling thread alone finishes what no one else takes, so nothing can wait for ever. Cost: a
// lock and, where a helper comes, a wake-up of a thread for each part: parts should take longer
// than that, some 10 us. Threads: safe; parts may themselves call ForEach. The calling thread may
// be one of the pool's or any other.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

#include "core/base/executor.h"
#include "server/jobs/job_pool.h"

namespace stepcast::server {

class PoolExecutor final : public Executor {
 public:
  // Borrows the pool, which needs helpers to be of use.
  explicit PoolExecutor(JobPool& pool) : pool_(pool) {}

  void ForEach(size_t count, absl::FunctionRef<bool(size_t)> part) const override;

 private:
  JobPool& pool_;
};

}  // namespace stepcast::server
