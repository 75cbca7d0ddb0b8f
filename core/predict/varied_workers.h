// A scenario whose number of workers is varied by something else in the request.
//
// Threads: pure function.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

#include "core/model/scenario.h"
#include "core/predict/request_faults.h"

namespace stepcast {

// The scenario without what fixes the number of workers, each of which is a fault at
// `scenario.FIELD`; `because` says what varies it.
inline ScenarioDraft WithVariedWorkers(const ScenarioDraft& draft, const std::string& because,
                                       RequestFaults& faults) {
  ScenarioDraft varied = draft;
  if (draft.workers.has_value())
    faults.Add("scenario.workers",
               absl::StrCat("is ", *draft.workers, ", but must be unset: ", because));
  if (!draft.start_offsets_ns.empty()) {
    faults.Add("scenario.start_offsets_ns",
               absl::StrCat(draft.start_offsets_ns.size(), " given, must be empty: ", because));
  }
  if (!draft.worker_groups.empty()) {
    faults.Add("scenario.worker_groups",
               absl::StrCat(draft.worker_groups.size(), " given, must be empty: ", because));
  }
  varied.workers.reset();
  varied.start_offsets_ns.clear();
  varied.worker_groups.clear();
  return varied;
}

}  // namespace stepcast
