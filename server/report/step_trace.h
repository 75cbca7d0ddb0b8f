// One step of one worker on its lanes, picked out of the pieces of a trace while they come.
//
// The contract's GenerateTrace gives all steps of all workers, some hundred bytes an operation; a
// page shows one step. Shown is the first worker's step that is nearest to a given length.
// Memory: the first worker's operations. Threads: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepcast::server {

// The operations of one step. Times are nanoseconds from the step's start.
struct StepTimeline {
  struct Operation {
    int32_t lane = 0;  // of `lanes`
    int32_t name = 0;  // of `names`
    int32_t kind = 0;  // of `kinds`
    int64_t start_ns = 0;
    int64_t length_ns = 0;
    int64_t size_bytes = 0;  // carried; 0: a computation
  };
  int32_t step = 0;         // from 0
  int32_t steps_found = 0;  // among which it was chosen
  int64_t length_ns = 0;
  std::vector<std::string> lanes;
  std::vector<std::string> names;
  std::vector<std::string>
      kinds;  // transfer, parsing, collective, computation, or a pipeline's part
  std::vector<Operation> operations;  // by start; a transfer in several services is there as often
  int64_t operations_left_out = 0;    // beyond kMaxShownOperations
};

inline constexpr size_t kMaxShownOperations = 20'000;

class StepTrace {
 public:
  // The next bytes. DATA_LOSS, reason TRACE_UNREADABLE, for what is no trace.
  absl::Status Take(std::string_view piece);
  // REQUIRES: all pieces were taken. DATA_LOSS for a trace that ends too early; NOT_FOUND, reason
  // NO_STEP, for one without a whole step of the first worker.
  absl::StatusOr<StepTimeline> StepNearest(double seconds) const;

 private:
  struct Event {
    int32_t thread = 0;
    int32_t name = 0;
    int32_t kind = 0;
    int32_t step = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t size_bytes = 0;
  };
  struct Texts {
    std::vector<std::string> all;
    std::unordered_map<std::string, int32_t> indices;

    int32_t IndexOf(const std::string& text);
  };

  absl::Status TakeEvent();

  // Between pieces: the object of the second level that is being read, its depth, and whether a
  // string is, and a backslash in it.
  std::string object_;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool ended_ = false;

  Texts names_;
  Texts kinds_;
  std::map<int32_t, std::string> lanes_;  // by thread
  std::vector<Event> steps_;
  std::vector<Event> operations_;
};

}  // namespace stepcast::server
