// The computation of a worker's step by the pass that it belongs to.
//
// Source: dPRO (MLSys 2022), Table 2, which tells forward and backward apart in this way.
// Threads: a pure function.
#pragma once

#include <optional>

#include "core/engine/program.h"
#include "core/model/profile.h"

namespace stepcast {

// Seconds of a step, mean over the recorded steps, at the recorded speed. Of several streams the
// one that has most of a pass.
struct PassTimes {
  double forward = 0;
  double backward = 0;  // of inputs and of weights
  double optimizer = 0;
  double other = 0;  // of what belongs elsewhere, or does not say

  // At so many times the speed.
  PassTimes operator/(double speed) const {
    return {forward / speed, backward / speed, optimizer / speed, other / speed};
  }
};

// Of what the program's worker and its host compute; parsing is in none. None where no computation
// says what it belongs to. REQUIRES: the program is of this profile. Cost: linear in operations x
// steps.
std::optional<PassTimes> PassTimesOf(const Program& program, const Profile& profile);

}  // namespace stepcast
