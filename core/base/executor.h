// An executor: runs the independent parts of a computation, one after the other or side by side.
//
// The core has no threads of its own; who has some gives it another executor.
// Results may not depend on which one it is.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace stepcast {

class Executor {
 public:
  virtual ~Executor() = default;
  // Calls part(0) to part(count - 1), each once, and returns when all have returned. They are begun
  // in that order, perhaps at the same time on several threads; what one part does must not touch
  // what another one does. Once a part has returned false no more are begun.
  virtual void ForEach(size_t count, absl::FunctionRef<bool(size_t)> part) const = 0;
  // The same of parts that leave nothing behind by which another process could find what they made.
  virtual void ForEachHere(size_t count, absl::FunctionRef<bool(size_t)> part) const {
    ForEach(count, part);
  }
};

// On the calling thread.
class InOrder final : public Executor {
 public:
  void ForEach(size_t count, absl::FunctionRef<bool(size_t)> part) const override {
    size_t next = 0;
    while (next < count && part(next)) ++next;
  }
};

}  // namespace stepcast
