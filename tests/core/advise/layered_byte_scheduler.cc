#include "tests/core/advise/layered_byte_scheduler.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"

namespace stepcast {

namespace {

constexpr double kNotScheduled = std::numeric_limits<double>::infinity();
constexpr int64_t kMaxTensorBytes = 1'000'000'000'000'000;
constexpr int64_t kMaxCreditPartitions = 1'000;

int64_t PartitionsOf(int64_t bytes, int64_t partition_bytes) {
  if (bytes == 0) return 0;
  return partition_bytes == 0 ? 1 : 1 + (bytes - 1) / partition_bytes;
}

// The simulation of an iteration, from the begin of its backward pass to the end of the next
// forward one.
class Iteration {
 public:
  Iteration(std::span<const ScheduledLayer> layers, const PartitionNetwork& network,
            const PartitionSchedule& schedule)
      : layers_(layers), network_(network), schedule_(schedule), partitions_left_(layers.size()) {
    for (size_t i = 0; i < layers.size(); ++i)
      partitions_left_[i] = PartitionsOf(layers[i].bytes, schedule.partition_bytes);
  }

  absl::StatusOr<double> Run(StopCheck stop) {
    PacedStopCheck paced(stop);
    StartComputing();
    while (computing_ || !in_flight_.empty()) {
      Advance(NextEvent());
      // The number of the partitions in flight bounds the cost of an event.
      if (!paced.GoesOn(1)) return paced.status();
    }
    return now_;
  }

 private:
  // Waiting to enter.
  struct Waiting {
    int64_t rank = 0;
    int64_t sequence = 0;
    size_t layer = 0;
    int64_t bytes = 0;

    bool operator<(const Waiting& other) const {  // the lowest on top
      return std::pair(rank, sequence) > std::pair(other.rank, other.sequence);
    }
  };
  struct InFlight {
    size_t layer = 0;
    int64_t bytes = 0;
    double started = 0;      // when its startup has passed
    double serial_left = 0;  // seconds
    double bytes_left = 0;
  };

  bool IsBackward() const { return next_ < layers_.size(); }
  // The layer that step `next_` computes: backward from the last, then forward from the first.
  size_t Layer() const {
    return IsBackward() ? layers_.size() - 1 - next_ : next_ - layers_.size();
  }

  // Starts what can be computed, and passes over what takes no time.
  void StartComputing() {
    while (!computing_ && next_ < 2 * layers_.size()) {
      const size_t layer = Layer();
      if (!IsBackward() && partitions_left_[layer] > 0) return;
      work_left_ = IsBackward() ? layers_[layer].backward_seconds : layers_[layer].forward_seconds;
      computing_ = true;
      if (!(work_left_ > 0)) EndComputing();
    }
  }

  void EndComputing() {
    computing_ = false;
    if (IsBackward()) Ready(Layer());
    ++next_;
  }

  void Ready(size_t layer) {
    int64_t left = layers_[layer].bytes;
    const int64_t rank = schedule_.order == PartitionSchedule::Order::kNearInputFirst
                             ? static_cast<int64_t>(layer)
                             : 0;
    while (left > 0) {
      const int64_t bytes =
          schedule_.partition_bytes == 0 ? left : std::min(left, schedule_.partition_bytes);
      waiting_.push({.rank = rank, .sequence = sequence_++, .layer = layer, .bytes = bytes});
      left -= bytes;
    }
    Enter();
  }

  void Enter() {
    while (!waiting_.empty()) {
      const Waiting& first = waiting_.top();
      const bool has_credit = schedule_.credit_bytes == 0 || in_flight_.empty() ||
                              first.bytes <= schedule_.credit_bytes - bytes_in_flight_;
      if (!has_credit) return;
      bytes_in_flight_ += first.bytes;
      in_flight_.push_back({.layer = first.layer,
                            .bytes = first.bytes,
                            .started = now_ + network_.startup_seconds,
                            .serial_left = network_.serial_seconds,
                            .bytes_left = static_cast<double>(first.bytes)});
      waiting_.pop();
    }
  }

  double ComputationSpeed() const { return in_flight_.empty() ? 1 : network_.computation_speed; }
  double BytesPerSecond() const {
    return computing_ ? network_.overlapped_bytes_per_second : network_.alone_bytes_per_second;
  }

  double NextEvent() const {
    double seconds = kNotScheduled;
    if (computing_) seconds = work_left_ / ComputationSpeed();
    if (!in_flight_.empty()) {
      const InFlight& first = in_flight_.front();
      const double start = std::max(0.0, first.started - now_);
      // The rate that bytes will have after the startup may be another, if computation ends first.
      const double transfer = start > 0               ? start
                              : first.serial_left > 0 ? first.serial_left
                                                      : first.bytes_left / BytesPerSecond();
      seconds = std::min(seconds, transfer);
    }
    return seconds;
  }

  void Advance(double seconds) {
    bool transfer_ended = false;
    const double speed = ComputationSpeed();
    if (!in_flight_.empty()) transfer_ended = Transfer(seconds);
    now_ += seconds;
    if (computing_) {
      const bool ends = work_left_ / speed <= seconds;
      work_left_ -= seconds * speed;
      if (ends) EndComputing();
    }
    if (transfer_ended) {
      --partitions_left_[in_flight_.front().layer];
      bytes_in_flight_ -= in_flight_.front().bytes;
      in_flight_.pop_front();
      Enter();
    }
    StartComputing();
  }

  // True if the first in flight has arrived.
  bool Transfer(double seconds) {
    InFlight& first = in_flight_.front();
    if (first.started > now_) {
      if (first.started - now_ <= seconds) first.started = now_;  // exactly, whatever the rounding
      return false;
    }
    if (first.serial_left > 0) {
      first.serial_left = first.serial_left <= seconds ? 0 : first.serial_left - seconds;
      return false;
    }
    const bool ends = first.bytes_left / BytesPerSecond() <= seconds;
    first.bytes_left -= seconds * BytesPerSecond();
    return ends;
  }

  const std::span<const ScheduledLayer> layers_;
  const PartitionNetwork& network_;
  const PartitionSchedule schedule_;
  std::vector<int64_t> partitions_left_;  // by layer
  std::priority_queue<Waiting> waiting_;
  std::deque<InFlight> in_flight_;  // as they entered
  int64_t bytes_in_flight_ = 0;
  int64_t sequence_ = 0;
  size_t next_ = 0;  // step of computation
  bool computing_ = false;
  double work_left_ = 0;
  double now_ = 0;
};

void CheckNotBelowZero(const std::string& field, double value, FaultList& faults) {
  if (!(value >= 0 && std::isfinite(value)))
    faults.Add(field, absl::StrCat(value, " is not a number from 0 on"));
}

void CheckFromZero(const std::string& field, int64_t value, int64_t most, FaultList& faults) {
  if (value < 0 || value > most) faults.Add(field, absl::StrCat(value, " is not from 0 to ", most));
}

FaultList FaultsOfNetwork(std::span<const ScheduledLayer> layers, const PartitionNetwork& network,
                          const PartitionLimits& limits) {
  FaultList faults;
  if (layers.empty()) faults.Add("layers", "there is none");
  if (layers.size() > Index(limits.max_layers)) {
    faults.Add("layers",
               OverLimit(static_cast<int64_t>(layers.size()), "max_layers", limits.max_layers));
    return faults;
  }
  for (size_t i = 0; i < layers.size() && !faults.full(); ++i) {
    const std::string path = absl::StrCat("layers[", i, "].");
    CheckNotBelowZero(path + "forward_seconds", layers[i].forward_seconds, faults);
    CheckNotBelowZero(path + "backward_seconds", layers[i].backward_seconds, faults);
    CheckFromZero(path + "bytes", layers[i].bytes, kMaxTensorBytes, faults);
  }
  CheckNotBelowZero("network.startup_seconds", network.startup_seconds, faults);
  CheckNotBelowZero("network.serial_seconds", network.serial_seconds, faults);
  const auto check_above_zero = [&](const char* field, double value) {
    if (!(value > 0 && std::isfinite(value)))
      faults.Add(field, absl::StrCat(value, " is not a number above 0"));
  };
  check_above_zero("network.overlapped_bytes_per_second", network.overlapped_bytes_per_second);
  check_above_zero("network.alone_bytes_per_second", network.alone_bytes_per_second);
  check_above_zero("network.computation_speed", network.computation_speed);
  return faults;
}

// REQUIRES: partition_bytes >= 0.
int64_t PartitionsOfAll(std::span<const ScheduledLayer> layers, int64_t partition_bytes) {
  int64_t partitions = 0;
  for (const ScheduledLayer& layer : layers) {
    // No sum of counts overflows: there are at most 1e5 layers of 1e15 bytes.
    partitions = std::min(partitions + PartitionsOf(layer.bytes, partition_bytes),
                          std::numeric_limits<int64_t>::max() / 2);
  }
  return partitions;
}

absl::Status ScheduleStatus(FaultList faults) {
  if (faults.empty()) return absl::OkStatus();
  return FaultsError("SCHEDULE_INVALID", std::move(faults).Take());
}

}  // namespace

PartitionNetwork PartitionNetworkOf(const CollectiveRates& rates) {
  return {.startup_seconds = rates.startup_seconds,
          .overlapped_bytes_per_second = 1 / rates.overlapped_seconds_per_byte,
          .alone_bytes_per_second = 1 / rates.alone_seconds_per_byte,
          .computation_speed = rates.computation_speed};
}

absl::StatusOr<double> IterationSeconds(std::span<const ScheduledLayer> layers,
                                        const PartitionNetwork& network,
                                        const PartitionSchedule& schedule, StopCheck stop,
                                        const PartitionLimits& limits) {
  FaultList faults = FaultsOfNetwork(layers, network, limits);
  if (schedule.credit_bytes < 0)
    faults.Add("credit_bytes", absl::StrCat(schedule.credit_bytes, " is below 0"));
  if (schedule.partition_bytes < 0) {
    faults.Add("partition_bytes", absl::StrCat(schedule.partition_bytes, " is below 0"));
  } else if (faults.empty()) {
    const int64_t partitions = PartitionsOfAll(layers, schedule.partition_bytes);
    if (partitions > limits.max_partitions) {
      faults.Add("partition_bytes", absl::StrCat(schedule.partition_bytes, " makes ", partitions,
                                                 " partitions, above the limit max_partitions = ",
                                                 limits.max_partitions));
    }
  }
  if (absl::Status status = ScheduleStatus(std::move(faults)); !status.ok()) return status;
  return Iteration(layers, network, schedule).Run(stop);
}

absl::StatusOr<PartitionSearch> SearchPartitions(std::span<const ScheduledLayer> layers,
                                                 const PartitionNetwork& network,
                                                 const PartitionGrid& grid, StopCheck stop,
                                                 const PartitionLimits& limits) {
  FaultList faults = FaultsOfNetwork(layers, network, limits);
  const size_t size = grid.partition_bytes.size() * grid.credit_partitions.size();
  if (size > Index(limits.max_grid))
    faults.Add("grid", OverLimit(static_cast<int64_t>(size), "max_grid", limits.max_grid));
  for (size_t i = 0; i < grid.partition_bytes.size() && !faults.full(); ++i) {
    CheckFromZero(absl::StrCat("grid.partition_bytes[", i, "]"), grid.partition_bytes[i],
                  kMaxTensorBytes, faults);
  }
  for (size_t i = 0; i < grid.credit_partitions.size() && !faults.full(); ++i) {
    CheckFromZero(absl::StrCat("grid.credit_partitions[", i, "]"), grid.credit_partitions[i],
                  kMaxCreditPartitions, faults);
  }
  if (absl::Status status = ScheduleStatus(std::move(faults)); !status.ok()) return status;
  const absl::StatusOr<double> first_come = IterationSeconds(layers, network, {}, stop, limits);
  if (!first_come.ok()) return first_come.status();
  PartitionSearch search{.seconds = *first_come, .first_come_seconds = *first_come};
  const auto try_schedule = [&](const PartitionSchedule& schedule) {
    const absl::StatusOr<double> seconds =
        IterationSeconds(layers, network, schedule, stop, limits);
    if (!seconds.ok()) return seconds.status();
    if (*seconds < search.seconds) {
      search.seconds = *seconds;
      search.best = schedule;
    }
    return absl::OkStatus();
  };
  for (const int64_t partition : grid.partition_bytes) {
    if (PartitionsOfAll(layers, partition) > limits.max_partitions) continue;
    for (const int32_t credits : grid.credit_partitions) {
      // Of whole tensors one is in flight, or all.
      const int64_t credit = partition == 0 ? std::min(credits, 1) : partition * credits;
      for (const auto order :
           {PartitionSchedule::Order::kNearInputFirst, PartitionSchedule::Order::kFirstCome}) {
        const PartitionSchedule schedule{
            .order = order, .partition_bytes = partition, .credit_bytes = credit};
        if (absl::Status status = try_schedule(schedule); !status.ok()) return status;
      }
    }
  }
  return search;
}

}  // namespace stepcast
