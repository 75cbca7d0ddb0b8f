// The bottleneck of a job: the resource whose change would bring most (kChangesOfOneResource),
// which is often not the most used one, since what is busy beside something slower holds nothing
// back.
//
// Method: a short run of a change, against the begin of a run without it that has the same random
// choices, tells its gain. Changes go from the one that could bring most on, by a bound of its
// gain; one that could not bring more than another was found to bring is not run. Bounds: with a
// resource twice as fast a step is shorter by no more than half of the time in which that is in use
// (delay everything else while the slow one catches up), and no shorter than what another resource
// needs alone. They are means, and hold but for anomalies of scheduling. Changes that short runs do
// not tell apart are left to full ones, and so is the gain to be told of asynchronous servers,
// which short ones do not settle. Threads: none. Pure functions of their arguments.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/communication/all_reduce.h"
#include "core/model/profile.h"
#include "core/predict/throughput.h"
#include "core/predict/what_if.h"

namespace stepcast {

// The greatest gain, of about equal ones the first of kChangesOfOneResource; twice as fast
// computation where none brings 1 %, for then nothing but the workers' own pace is left to name.
// Other changes than those of one resource are passed over. Empty where no gain is known.
std::optional<ResourceGain> GreatestGain(const std::vector<ResourceGain>& gains);

// Names the resource that the gain is of as the prediction's bottleneck.
void NameBottleneck(const ResourceGain& gain, Prediction& prediction);

class BottleneckSearch {
 public:
  // `base`: of the scenario as it is; `planned`: its collectives; `is_bounded`: of a steady state.
  // Elsewhere a step more or less in the counted time may bring more than the bounds have it.
  BottleneckSearch(const Profile& profile, const JobChanges& changes, const Prediction& base,
                   const std::vector<PlannedCollective>& planned, bool is_bounded);

  // The change to run next; empty: enough is known.
  std::optional<size_t> Next() const;
  const Scenario& scenario(size_t change) const { return candidates_[change].scenario; }
  // Whose steps it repeats; null: the job's.
  const std::shared_ptr<const Profile>& profile(size_t change) const {
    return candidates_[change].profile;
  }
  // `gain`: of steps per second; empty: a run so short does not tell it. More than can be is
  // chance.
  void AddShort(size_t change, std::optional<double> gain);
  void AddInFull(size_t change, double gain);
  // The changes, two at least, that full runs must tell apart, where short ones are known to a
  // share `error` of steps per second; empty: none.
  std::vector<size_t> Unclear(double error) const;
  // The greatest change, where only a short run has told its gain.
  std::optional<size_t> GreatestByShort() const;
  WhatIf change(size_t index) const { return candidates_[index].change; }
  std::optional<ResourceGain> Greatest() const;

 private:
  struct Candidate {
    WhatIf change = WhatIf::kComputationTwiceAsFast;
    Scenario scenario;
    std::shared_ptr<const Profile> profile;
    double most = 0;  // that its gain may be
    std::optional<double> gain;
    bool in_full = false;   // short runs do not tell it
    bool is_short = false;  // its gain is of a short run
  };

  std::vector<Candidate> candidates_;
};

}  // namespace stepcast
