// The forward pass of a training step, which is all that inference does: it downloads the
// parameters and computes forward.
//
// Meaning: gradients begin at one operation, the cut: the first that waits for every download that
// gradients come from, and that all that leads from downloads to uploads passes.
// The forward pass is all that the cut waits for, the cut itself, every download, and what
// downloads wait for.
// Operations behind the last use of a parameter on the way to the loss cannot be told from the
// backward pass and are left out with it (a softmax, the loss); where several outputs meet in the
// loss, the loss is the cut.
// Threads: a pure function.
#pragma once

#include "absl/status/statusor.h"

#include "core/model/profile.h"

namespace stepcast {

// The same profile with those operations only; itself where nothing is uploaded. Cost: linear.
// Failure: FAILED_PRECONDITION, reason FORWARD_PASS_UNKNOWN, with the operations that are in the
// way: nothing is downloaded, no operation is a cut, or a download waits for an upload.
absl::StatusOr<Profile> ForwardPass(const Profile& profile);

}  // namespace stepcast
