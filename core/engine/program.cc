#include "core/engine/program.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stepcast {

Lanes::Lanes(std::vector<LaneSpec> specs) : specs_(std::move(specs)) {
  for (const LaneSpec& spec : specs_) {
    const auto lane = static_cast<LaneIndex>(&spec - specs_.data());
    assert(lane == 0 || specs_[Index(lane) - 1].role <= spec.role);
    if (spec.role == LaneRole::kCompute) after_compute_ = lane + 1;
    if (spec.role < LaneRole::kJoint) first_joint_ = lane + 1;
    if (spec.role != LaneRole::kLink) {
      first_link_ = lane + 1;
      continue;
    }
    if (spec.network == networks()) first_of_.push_back(lane);
    assert(spec.network + 1 == networks() && spec.index == lane - first_of_.back());
  }
}

Span TransferWork::Total() const {
  if (services == 1) return first;
  const double sum = static_cast<double>(first.ticks) +
                     static_cast<double>(middle.ticks) * (services - 2) +
                     static_cast<double>(last.ticks);
  if (sum >= static_cast<double>(kEndOfTime.ticks)) return Span{kEndOfTime.ticks};
  return {first.ticks + middle.ticks * (services - 2) + last.ticks};
}

Program::Program(ProgramDraft draft)
    : lanes_(std::move(draft.lanes)),
      step_count_(draft.step_count),
      lane_(std::move(draft.lane)),
      source_(std::move(draft.source)),
      size_bytes_(std::move(draft.size_bytes)),
      work_(std::move(draft.work)),
      duration_(std::move(draft.durations)),
      gatherings_(std::move(draft.gatherings)),
      operations_on_(Index(lanes_.count()), 0) {
  for (const LaneIndex lane : lane_) ++operations_on_[Index(lane)];
  for (const TransferWork& work : work_) {
    most_services_ = std::max(most_services_, work.services);
    chunk_count_ += work.services;
  }
}

absl::StatusOr<Program> Program::Make(ProgramDraft draft, StopCheck stop) {
  const std::vector<ProgramDraft::Dependency> dependencies = std::move(draft.dependencies);
  Program program(std::move(draft));
  if (absl::Status status = program.Connect(dependencies, stop); !status.ok()) return status;
  if (absl::Status status = program.MeasureSteps(stop); !status.ok()) return status;
  return program;
}

absl::Status Program::Connect(const std::vector<ProgramDraft::Dependency>& dependencies,
                              StopCheck stop) {
  PacedStopCheck pace(stop);
  first_dependent_.assign(lane_.size() + 1, 0);
  dependency_count_.assign(lane_.size(), 0);
  for (const auto& [before, after] : dependencies) {
    if (!pace.GoesOn(1)) return pace.status();
    ++first_dependent_[Index(before) + 1];
    ++dependency_count_[Index(after)];
  }
  for (size_t i = 1; i < first_dependent_.size(); ++i) {
    first_dependent_[i] += first_dependent_[i - 1];
  }
  std::vector<int32_t> next = first_dependent_;
  dependents_.resize(dependencies.size());
  for (const auto& [before, after] : dependencies) {
    if (!pace.GoesOn(1)) return pace.status();
    dependents_[Index(next[Index(before)]++)] = after;
  }
  for (OpIndex op = 0; op < size(); ++op) {
    if (dependency_count(op) == 0) roots_.push_back(op);
  }
  return absl::OkStatus();
}

absl::Status Program::MeasureSteps(StopCheck stop) {
  PacedStopCheck pace(stop);
  double transfers = 0;
  for (const TransferWork& work : work_) transfers += static_cast<double>(work.Total().ticks);
  const Span* at = duration_.data();
  for (int32_t row = 0; row < step_count_; ++row) {
    double ticks = transfers;
    for (OpIndex op = 0; op < size(); ++op, ++at) {
      ticks += static_cast<double>(at->ticks);
      is_whole_ = is_whole_ && at->ticks % kTicksPerNanosecond == 0;
    }
    longest_step_ticks_ = std::max(longest_step_ticks_, ticks);
    if (!pace.GoesOn(size())) return pace.status();
  }
  return absl::OkStatus();
}

Program Program::WithDurations(std::vector<Span> durations) const {
  Program program = *this;
  program.step_count_ = static_cast<int32_t>(durations.size() / lane_.size());
  program.duration_ = std::move(durations);
  // Nothing asks it to stop.
  static_cast<void>(program.MeasureSteps([] { return absl::OkStatus(); }));
  return program;
}

}  // namespace stepcast
