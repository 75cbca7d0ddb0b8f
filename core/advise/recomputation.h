// Outputs of the forward pass that are not kept, but computed again in the backward pass.
//
// Source: Chen et al., "Training deep nets with sublinear memory cost", 2016, sections 3 (segments)
// and 4.1 (what is cheap to compute is dropped first); dPRO (MLSys 2022), section 7.4.
// Threads: immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/memory.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"

namespace stepcast {

// The choice of what is computed again.
enum class Recomputed : uint8_t {
  // Outputs of cheap operations (activations, normalisations, softmax, dropout, pools), each from
  // the kept output before it: of a convolution, a matrix product, an addition or a concatenation.
  kCheapOutputs,
  // All of a segment but what the next one begins from.
  kSegments,
};

// True of an operation whose output is cheap to compute again, from one other output. Told by the
// last part of its name (`layer1.0.bn1`, `conv1/relu`, `0/native_layer_norm`), and where that
// says nothing (`features.1`) by whether it has a gradient.
bool IsCheapOutput(std::string_view name, bool has_gradient);

// The ways to compute outputs of a profile again.
//
// The parts of the forward pass are its operations `forward/NAME` with a `backward/NAME` each;
// where there are none, those of a PyTorch recording that a backward operation waits for. A part is
// computed again from what the part before it hands on: its output_bytes, which are then held;
// where a profile does not know them, what a part keeps is its output. Assumes that it needs no
// other output that is not kept.
class Recomputation {
 public:
  // REQUIRES: the profile outlives it.
  Recomputation(const Profile& profile, const MemoryModel& model);

  // The most that can be chosen: of kSegments the segments (below 2: none), of kCheapOutputs the
  // places between two kept outputs where something cheap is.
  int32_t Most(Recomputed what) const;

  // The job with so many segments, of about the same bytes, the last of which is not computed
  // again; or with so many places computed again, those first that save the most bytes for their
  // time. What is computed again, `recompute/NAME`, runs just before the part behind it is undone.
  // FAILED_PRECONDITION, reason NOTHING_TO_RECOMPUTE, where nothing can be. REQUIRES: count >= 2 of
  // segments, >= 1 of places.
  absl::StatusOr<MemoryPlan> Plan(Recomputed what, int32_t count) const;

  // The job with the fewest of them that fit into so many bytes; where none do, with those that
  // need least. Asks `stop` once a count. Cost: linear in the parts a count, and the profile once.
  absl::StatusOr<MemoryPlan> Fitting(Recomputed what, double budget_bytes, StopCheck stop) const;

 private:
  struct Part {
    int32_t forward = 0;
    int32_t backward = 0;       // the first that undoes it
    double kept_bytes = 0;      // until it is undone
    double output_bytes = 0;    // what it hands on; 0: not known
    double seconds = 0;         // of the forward operation, mean
    bool has_gradient = false;  // of its output, held while it and the one behind it are undone
    bool is_cheap = false;
  };
  // Parts that are computed again, one after the other, before the one behind them is undone.
  struct Run {
    size_t first = 0;
    size_t last = 0;
    double saved_bytes = 0;
    double seconds = 0;
  };
  struct Insertion;

  std::vector<uint8_t> GradientsMakers() const;
  void FindPairs();
  void FindLinks();
  void FindCheapRuns();
  std::vector<Run> RunsOf(Recomputed what, int32_t count) const;
  std::vector<Run> Segments(int32_t count) const;
  // Bytes that are held for a run's sake, besides those that are kept anyway.
  double InputBytes(const Run& run) const;
  double PeakOf(const std::vector<Run>& runs) const;
  absl::Status CheckAny(Recomputed what) const;
  static RecordedStep StepOf(const RecordedStep& old, const std::vector<Insertion>& insertions);
  absl::StatusOr<MemoryPlan> Write(Recomputed what, const std::vector<Run>& runs) const;

  const Profile& profile_;
  double parameter_bytes_ = 0;
  double other_bytes_ = 0;     // kept by what is no part, all along
  bool keeps_outputs_ = true;  // what a part keeps is its output
  std::vector<Part> parts_;    // in the order of the forward pass
  std::vector<Run> cheap_;     // the most bytes for their time first
};

}  // namespace stepcast
