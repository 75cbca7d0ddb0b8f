// The four phases of one worker's steps, as a capture of its network traffic shows them.
//
// Source: ICPE 2020, section 1 on Lin et al.: what lies between the end of the downlink
// transmission and the start of the uplink transmission is taken for the worker's computation. What
// overlaps is left open there. Taken here: the uplink phase goes from its first to its last byte,
// gaps and all, and begins no earlier than the last download ends, so that the phases of one worker
// add up to its step. Threads: none.
#pragma once

#include <span>

#include "core/base/time.h"
#include "core/compare/closed_network.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"

namespace stepcast {

class PhaseRecorder final : public TraceSink {
 public:
  // The graph is borrowed.
  explicit PhaseRecorder(const Program& graph) : graph_(graph) {}

  // REQUIRES: all steps are of one worker, and each begins where the one before ended.
  void OnStep(std::span<const ChunkRecord> chunks) override;

  // Over the steps seen. REQUIRES: there are any.
  PhaseSeconds Mean() const;

 private:
  const Program& graph_;
  Instant step_start_;
  int64_t steps_ = 0;
  PhaseSeconds sum_;
};

}  // namespace stepcast
