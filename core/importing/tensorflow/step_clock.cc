#include "core/importing/tensorflow/step_clock.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace stepcast {

namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr int64_t kFar = kNone / 4;  // two of them do not overflow

bool OnWorkersClock(const Operation& operation) { return IsOnWorkersClock(operation.resource); }

}  // namespace

StepClock::StepClock(const std::vector<Operation>& operations, int32_t servers,
                     double bandwidth_bytes_per_second, KeptReadings kept)
    : operations_(operations),
      kept_(kept),
      upload_ns_(static_cast<size_t>(std::max(servers, 0)), 0),
      bounds_(upload_ns_.size()) {
  constexpr double kNsPerSecond = 1e9;
  for (const Operation& operation : operations) {
    if (operation.resource != Resource::kUplink) continue;
    const double ns =
        static_cast<double>(operation.size_bytes) / bandwidth_bytes_per_second * kNsPerSecond;
    int64_t& all = upload_ns_[static_cast<size_t>(operation.parameter_server)];
    all = ns < static_cast<double>(kFar - all) ? all + static_cast<int64_t>(ns) : kFar;
  }
}

// The bounds of each server's clock: by how much it may be moved forwards, at least and at most.
void StepClock::FindBounds(const RecordedStep& step) {
  std::fill(bounds_.begin(), bounds_.end(),
            Bounds{.least = -kNone, .most = kNone, .first_start = kNone});
  worker_start_ = kNone;
  worker_end_ = -kNone;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    if (OnWorkersClock(operation)) {
      worker_start_ = std::min(worker_start_, step.start_ns[i]);
      worker_end_ = std::max(worker_end_, step.end_ns[i]);
    } else {
      Bounds& server = bounds_[static_cast<size_t>(operation.parameter_server)];
      server.first_start = std::min(server.first_start, step.start_ns[i]);
    }
    if (!IsTransfer(operation.resource)) continue;
    Bounds& server = bounds_[static_cast<size_t>(operation.parameter_server)];
    for (const int32_t before : operation.waiting_for) {
      const auto maker = static_cast<size_t>(before);
      if (OnWorkersClock(operations_[maker]) == OnWorkersClock(operation)) continue;
      if (operation.resource == Resource::kDownlink) {
        server.most = std::min(server.most, step.end_ns[i] - step.end_ns[maker]);
      } else {
        server.least = std::max(server.least, step.end_ns[maker] - step.end_ns[i]);
      }
    }
  }
}

int64_t StepClock::ShiftOf(size_t server) const {
  const Bounds& bounds = bounds_[server];
  if (bounds.first_start == kNone || worker_start_ == kNone) return 0;
  // Without uploads nothing else says that a server's clock is behind.
  const int64_t least = upload_ns_[server] > 0 ? bounds.least : worker_start_ - bounds.first_start;
  if (least > 0) return least;
  if (bounds.most < 0) return std::max(bounds.most, least);
  if (bounds.most == kNone && least != -kNone &&
      -least > worker_end_ - worker_start_ + upload_ns_[server])
    return least;
  return 0;
}

void StepClock::Clamp(RecordedStep& step, size_t operation, int64_t earliest) {
  const int64_t moved = earliest - step.start_ns[operation];
  if (moved <= 0) return;
  step.start_ns[operation] = earliest;
  ++repairs_.clamped;
  repairs_.clamped_ns += moved;
  repairs_.most_clamped_ns = std::max(repairs_.most_clamped_ns, moved);
}

// The step begins at the first start on a clock that was right.
RepairedStep StepClock::MoveServers(RecordedStep& step) {
  bool moved = false;
  int64_t origin = worker_start_;
  std::vector<int64_t> shifts(bounds_.size());
  for (size_t server = 0; server < bounds_.size(); ++server) {
    shifts[server] = ShiftOf(server);
    // Unless the step has nothing of the worker's.
    if (kept_ == KeptReadings::kEnds && bounds_[server].first_start != kNone &&
        worker_start_ != kNone)
      shifts[server] = std::max(shifts[server], worker_start_ - bounds_[server].first_start);
    if (shifts[server] == 0) {
      origin = std::min(origin, bounds_[server].first_start);
      continue;
    }
    moved = true;
    ++repairs_.moved_clocks;
    if (std::abs(shifts[server]) > std::abs(repairs_.most_moved_ns))
      repairs_.most_moved_ns = shifts[server];
  }
  if (!moved) return {.begin_ns = origin, .shifts_ns = std::move(shifts)};
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (OnWorkersClock(operations_[i])) continue;
    const int64_t shift = shifts[static_cast<size_t>(operations_[i].parameter_server)];
    step.start_ns[i] += shift;
    step.end_ns[i] += shift;
  }
  return {.begin_ns = origin, .shifts_ns = std::move(shifts)};
}

RepairedStep StepClock::Repair(RecordedStep& step) {
  FindBounds(step);
  RepairedStep repaired = MoveServers(step);
  const int64_t origin = repaired.begin_ns;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const int64_t length = step.end_ns[i] - step.start_ns[i];
    step.start_ns[i] -= origin;
    Clamp(step, i, 0);
    step.end_ns[i] = step.start_ns[i] + length;
  }
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (!IsTransfer(operations_[i].resource)) continue;
    int64_t earliest = 0;
    for (const int32_t before : operations_[i].waiting_for)
      earliest = std::max(earliest, step.end_ns[static_cast<size_t>(before)]);
    if (kept_ == KeptReadings::kEnds) earliest = std::min(earliest, step.end_ns[i]);
    Clamp(step, i, earliest);
    step.end_ns[i] = std::max(step.end_ns[i], step.start_ns[i]);
  }
  return repaired;
}

}  // namespace stepcast
