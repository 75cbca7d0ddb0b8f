// The faults of a request that is made of parts with faults of their own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/error.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"

namespace stepcast {

class RequestFaults {
 public:
  // The faults of one part, under its path; nothing if `status` is OK. `renamed`: full paths that
  // the request has under another name.
  void AddPart(std::string_view path, const absl::Status& status,
               const std::map<std::string, std::string>& renamed = {});
  // Once, however often the same one is added. Beyond the first thousand they are dropped.
  void Add(std::string field, std::string description);

  // The same as FaultList::AddIf.
  template <typename... Parts>
  void AddIf(bool is_wrong, const std::string& field, const Parts&... description) {
    if (is_wrong) Add(field, absl::StrCat(ValueOf(description)...));
  }

  // OK where nothing was added. INVALID_ARGUMENT with `reason` and every fault, else the first
  // part's other failure (UNIMPLEMENTED).
  absl::Status ToStatus(std::string_view reason) &&;

 private:
  static constexpr size_t kMaxKept = 1000;

  std::vector<Fault> faults_;
  absl::Status other_;
};

// ResolveScenario, but a scenario whose collectives would wait for each other is a fault, too.
// `known`: a scenario of this profile that has been resolved so already, or null; what has the same
// program is not looked at again.
absl::StatusOr<Scenario> ResolveRunnable(const Profile& profile, const ScenarioDraft& draft,
                                         const Scenario* known = nullptr,
                                         const ScenarioLimits& limits = {});

// The runnable scenario with so many servers, one of the numbers up to `most` that a request has
// tried: to try numbers of servers is to ask for servers. Unless said otherwise all share links
// alike, as several do, or the sharing would be compared and not the numbers.
absl::StatusOr<Scenario> ResolveWithServers(const Profile& profile, const ScenarioDraft& draft,
                                            int32_t servers, int32_t most,
                                            const ScenarioLimits& limits = {});

// The scenario of a request that may choose among numbers of servers, before it does: with one
// server where it does, else as ResolveRunnable.
struct BeforeServers {
  absl::StatusOr<Scenario> scenario;
  bool has_none = false;  // its workers meet in collectives, whatever else is wrong with it
};
BeforeServers ResolveBeforeServers(const Profile& profile, const ScenarioDraft& draft, bool chooses,
                                   const ScenarioLimits& limits);

// The scenario without what fixes the number of workers, each of which is a fault at
// `scenario.FIELD`; `because` says what varies it.
ScenarioDraft WithVariedWorkers(const ScenarioDraft& draft, const std::string& because,
                                RequestFaults& faults);

// A fault where the options ask for a horizon that pipelines are not run to.
void CheckHorizonOfPipelines(Horizon horizon, RequestFaults& faults);

}  // namespace stepcast
