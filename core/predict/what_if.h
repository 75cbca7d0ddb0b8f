// Changes of a job whose gain is told: what-ifs.
//
// A change is another scenario of the same job, so that it is simulated as any scenario is, or the
// same of a job that waits for no data.
// Threads: immutable once made. Cost: linear in the recorded operations once, where several workers
// were recorded; then in the workers per change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// In a recording of several workers one is as fast as that whose steps it repeats; where
// collectives take measured times, twice as fast links halve those.
enum class WhatIf : uint8_t {
  kNoStragglers,            // every worker computes as fast, and has as fast a link, as the best
  kLinksTwiceAsFast,        // all of them
  kNoLatency,               // of messages between and inside nodes
  kComputationTwiceAsFast,  // of workers but for what their devices wait for hosts; servers are as
                            // they were
  kOneWorkerFewer,          // one of the slowest
  kBestBuckets,             // of few that are tried (AskForBuckets)
  kBestTransferOrder,       // likewise, of tensors to and from parameter servers
  kServersTwiceAsFast,      // what they compute, and parse of what they receive
  kNoHostWait,              // of workers' devices, for data or for anything else
  kDataLoadingTwiceAsFast,  // operations of the pass kDataLoading (WithDataLoading)
  kNoDataWait,              // likewise, in no time
  // Changes of pipelines only (core/diagnose/diagnosis.h).
  kEqualStages,           // every stage computes for as long as the mean of all
  kFreeTransfers,         // between stages
  kFreeReductions,        // of gradients
  kNoStepEnd,             // nothing follows the last reduction
  kTwiceTheMicroBatches,  // a step is of twice the examples
  kTwiceTheChunks,        // of each device, interleaved or breadth first
  kEagerReceives,         // posted at a step's begin
};
inline constexpr size_t kWhatIfCount = 18;
// "NO_STRAGGLERS".
const char* NameOf(WhatIf change);

// Changes that make one resource faster. Where two bring as much the first of them is named: it
// asks for less.
inline constexpr std::array kChangesOfOneResource = {
    WhatIf::kNoStragglers,     WhatIf::kNoHostWait,         WhatIf::kNoLatency,
    WhatIf::kLinksTwiceAsFast, WhatIf::kServersTwiceAsFast, WhatIf::kComputationTwiceAsFast};

// A change of one resource, and the share by which steps per second grow with it.
struct ResourceGain {
  WhatIf change = WhatIf::kComputationTwiceAsFast;
  double gain = 0;
};

// The scenario with a change, or the reason why it makes no difference or cannot be asked.
struct Changed {
  std::optional<Scenario> scenario;
  std::string why_not;
  // Whose steps are repeated; null: those of the profile that was asked about. All changes of one
  // JobChanges that have any have the same.
  std::shared_ptr<const Profile> profile;
};

// The profile whose operations of the pass kDataLoading take so many times their time, 0 to 1, of
// every recorded worker; or the reason why it makes no difference. Cost: linear in the recorded
// times.
struct ChangedRecording {
  std::optional<Profile> profile;
  std::string why_not;
};
ChangedRecording WithDataLoading(const Profile& profile, double factor);

class JobChanges {
 public:
  // The profile outlives it. Failure: what `stop` returns.
  static absl::StatusOr<JobChanges> Of(const Profile& profile, StopCheck stop);

  // REQUIRES, here and below: the scenario was resolved for the profile. Here: neither kBestBuckets
  // nor kBestTransferOrder, which are searched for, nor kOneWorkerFewer of a recording of several.
  Changed By(WhatIf change, const Scenario& scenario) const;

  // A recording of several workers without its slowest one.
  struct WithoutOne {
    std::vector<int32_t> recorded;  // workers whose steps the others repeat
    Changed changed;
  };
  WithoutOne WithoutTheSlowest(Scenario scenario) const;

 private:
  explicit JobChanges(const Profile& profile) : profile_(&profile) {}

  std::vector<double> SpeedsOf(const Scenario& scenario) const;
  Changed NoRecordedStragglers(Scenario scenario) const;
  Changed NoHostWait(Scenario scenario) const;
  void FindDataWait();

  const Profile* profile_;
  // Without what it waits for data; null where that is not known, or nothing.
  std::shared_ptr<const Profile> without_data_wait_;
  double data_share_ = 0;  // of a step, on the mean
  // By recorded worker of several: the mean time for which a step computes; else empty.
  std::vector<double> computed_ns_;
};

}  // namespace stepcast
