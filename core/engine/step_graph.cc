#include "core/engine/step_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/bandwidth.h"
#include "core/engine/parameter_placement.h"

namespace stepcast {

Resource LaneMap::KindOf(LaneIndex lane) const {
  if (lane == kWorker) return Resource::kWorker;
  constexpr Resource kKinds[] = {Resource::kParameterServer, Resource::kDownlink,
                                 Resource::kUplink};
  return kKinds[(lane - 1) / servers];
}

Span TransferWork::Total() const {
  if (services == 1) return first;
  const double sum = static_cast<double>(first.ticks) +
                     static_cast<double>(turn.ticks) * (services - 2) +
                     static_cast<double>(last.ticks);
  if (sum >= static_cast<double>(kEndOfTime.ticks)) return Span{kEndOfTime.ticks};
  return {first.ticks + turn.ticks * (services - 2) + last.ticks};
}

int64_t StepGraph::recorded_end_ns(int32_t step, OpIndex op) const {
  return profile_.steps()[static_cast<size_t>(step)].end_ns[static_cast<size_t>(source(op))];
}

class StepGraphBuilder {
 public:
  StepGraphBuilder(const Profile& profile, const Scenario& scenario, StepGraph::Times times,
                   StopCheck stop)
      : profile_(profile),
        scenario_(scenario),
        times_(times),
        stop_(stop),
        bandwidth_(scenario.bandwidth_bytes_per_second),
        graph_(profile) {}

  absl::StatusOr<StepGraph> Build() {
    graph_.lanes_.servers = scenario_.parameter_servers;
    PlaceOperations();
    if (status_.ok()) ConnectOperations();
    if (status_.ok()) FillDurations();
    if (status_.ok()) MeasureLongestStep();
    if (!status_.ok()) return status_;
    return std::move(graph_);
  }

 private:
  // Counts work and asks `stop` every kStopCheckInterval units of it; false once it has said so.
  bool GoesOn(size_t work) {
    work_ += work;
    if (work_ >= static_cast<size_t>(kStopCheckInterval) && status_.ok()) {
      work_ = 0;
      status_ = stop_();
    }
    return status_.ok();
  }

  bool HasParsing(const Operation& operation) const {
    return IsTransfer(operation.resource) && (scenario_.parsing_overhead.seconds_per_byte != 0 ||
                                              scenario_.parsing_overhead.seconds != 0);
  }

  LaneIndex LaneOf(const Operation& operation, int32_t server) const {
    switch (operation.resource) {
      case Resource::kDownlink:
        return graph_.lanes_.Downlink(server);
      case Resource::kUplink:
        return graph_.lanes_.Uplink(server);
      case Resource::kParameterServer:
        return graph_.lanes_.Server(server);
      default:
        return LaneMap::kWorker;
    }
  }

  void Append(int32_t source, LaneIndex lane, int64_t size_bytes) {
    graph_.lane_.push_back(lane);
    graph_.source_.push_back(source);
    graph_.size_bytes_.push_back(size_bytes);
    graph_.work_.push_back(graph_.lanes_.IsConnection(lane) ? WorkOf(size_bytes) : TransferWork{});
    graph_.most_services_ = std::max(graph_.most_services_, graph_.work_.back().services);
    graph_.chunk_count_ += graph_.work_.back().services;
  }

  // Section 3.2.2: a stream no larger than the window is sent whole at once; what is left of
  // another goes in one service more, or in turns of the quantum where there is one.
  TransferWork WorkOf(int64_t size_bytes) const {
    const bool split =
        scenario_.multiplexing != Multiplexing::kWholeStream && size_bytes > scenario_.window_bytes;
    if (!split) return {.first = bandwidth_.TimeFor(size_bytes), .turn = {}, .last = {}};
    const int64_t left = size_bytes - scenario_.window_bytes;
    const int64_t quantum = scenario_.quantum_bytes > 0 ? scenario_.quantum_bytes : left;
    const int64_t turns = (left - 1) / quantum;  // before the last one
    return {.first = bandwidth_.TimeFor(scenario_.window_bytes),
            .turn = bandwidth_.TimeFor(std::min(quantum, left)),
            .last = bandwidth_.TimeFor(left - turns * quantum),
            .services = static_cast<int32_t>(turns) + 2};
  }

  // Gives every operation its lane, and a transfer's parsing overhead its own operation on the
  // receiver (section 3.2.1).
  void PlaceOperations() {
    const std::vector<int32_t> servers = PlaceParameters(profile_, scenario_.parameter_servers);
    const std::vector<Operation>& operations = profile_.operations();
    for (size_t i = 0; i < operations.size() && GoesOn(1); ++i) {
      const Operation& operation = operations[i];
      const auto source = static_cast<int32_t>(i);
      first_.push_back(graph_.size());
      Append(source, LaneOf(operation, servers[i]), operation.size_bytes);
      if (HasParsing(operation)) {
        Append(source,
               operation.resource == Resource::kDownlink ? LaneMap::kWorker
                                                         : graph_.lanes_.Server(servers[i]),
               0);
      }
      last_.push_back(graph_.size() - 1);
    }
    graph_.operations_on_.assign(static_cast<size_t>(graph_.lanes_.count()), 0);
    for (const LaneIndex lane : graph_.lane_) ++graph_.operations_on_[static_cast<size_t>(lane)];
  }

  // What waited for a transfer waits for its parsing, and the parsing for the transfer.
  void ConnectOperations() {
    const auto size = static_cast<size_t>(graph_.size());
    std::vector<int32_t> counts(size + 1, 0);
    graph_.dependency_count_.assign(size, 0);
    ForEachDependency([&](OpIndex before, OpIndex after) {
      ++counts[static_cast<size_t>(before) + 1];
      ++graph_.dependency_count_[static_cast<size_t>(after)];
    });
    for (size_t i = 1; i <= size; ++i) counts[i] += counts[i - 1];
    graph_.first_dependent_ = counts;
    graph_.dependents_.resize(static_cast<size_t>(counts[size]));
    ForEachDependency([&](OpIndex before, OpIndex after) {
      graph_.dependents_[static_cast<size_t>(counts[static_cast<size_t>(before)]++)] = after;
    });
    for (OpIndex op = 0; op < graph_.size(); ++op) {
      if (graph_.dependency_count(op) == 0) graph_.roots_.push_back(op);
    }
  }

  // In ascending order of `after`, so that every list of dependents is ascending.
  template <typename Visit>
  void ForEachDependency(Visit visit) {
    const std::vector<Operation>& operations = profile_.operations();
    for (size_t i = 0; i < operations.size() && GoesOn(1 + operations[i].waiting_for.size()); ++i) {
      for (const int32_t before : operations[i].waiting_for)
        visit(last_[static_cast<size_t>(before)], first_[i]);
      if (first_[i] != last_[i]) visit(first_[i], last_[i]);
    }
  }

  Span ParsingTime(OpIndex op) const {
    const ParsingOverhead& overhead = scenario_.parsing_overhead;
    const double seconds =
        overhead.seconds_per_byte * static_cast<double>(graph_.size_bytes(op - 1)) +
        overhead.seconds;
    const double ticks = seconds * 1e9 * static_cast<double>(kTicksPerNanosecond);
    return {ticks >= static_cast<double>(kEndOfTime.ticks) ? kEndOfTime.ticks
                                                           : std::llround(ticks)};
  }

  Span RecordedTime(OpIndex op, const RecordedStep& step) const {
    const auto source = static_cast<size_t>(graph_.source(op));
    return Nanoseconds(step.end_ns[source] - step.start_ns[source]);
  }

  void FillDurations() {
    const std::vector<RecordedStep>& steps = profile_.steps();
    graph_.step_count_ =
        times_ == StepGraph::Times::kLeast ? 1 : static_cast<int32_t>(steps.size());
    graph_.duration_.assign(static_cast<size_t>(graph_.step_count_) * graph_.lane_.size(), Span{});
    size_t at = 0;
    const size_t rows_of_one = times_ == StepGraph::Times::kLeast ? steps.size() : 1;
    for (int32_t row = 0; row < graph_.step_count_; ++row) {
      for (OpIndex op = 0; op < graph_.size() && GoesOn(rows_of_one); ++op)
        graph_.duration_[at++] = DurationOf(op, row);
    }
  }

  Span DurationOf(OpIndex op, int32_t row) const {
    if (graph_.IsTransfer(op)) return {};
    if (graph_.IsParsing(op)) return ParsingTime(op);
    const std::vector<RecordedStep>& steps = profile_.steps();
    if (times_ == StepGraph::Times::kRecorded)
      return RecordedTime(op, steps[static_cast<size_t>(row)]);
    Span least = RecordedTime(op, steps.front());
    for (const RecordedStep& step : steps) least = std::min(least, RecordedTime(op, step));
    return least;
  }

  void MeasureLongestStep() {
    double transfers = 0;
    for (const TransferWork& work : graph_.work_)
      transfers += static_cast<double>(work.Total().ticks);
    for (int32_t row = 0; row < graph_.step_count_; ++row) {
      double sum = transfers;
      for (OpIndex op = 0; op < graph_.size() && GoesOn(1); ++op)
        sum += static_cast<double>(graph_.duration(row, op).ticks);
      graph_.longest_step_ticks_ = std::max(graph_.longest_step_ticks_, sum);
    }
  }

  const Profile& profile_;
  const Scenario& scenario_;
  const StepGraph::Times times_;
  const StopCheck stop_;
  absl::Status status_;
  size_t work_ = 0;
  const Bandwidth bandwidth_;
  StepGraph graph_;
  std::vector<OpIndex> first_;  // by operation of the profile: what waits for its dependencies
  std::vector<OpIndex> last_;   // and what others wait for
};

StepGraph StepGraph::Build(const Profile& profile, const Scenario& scenario, Times times) {
  return *Build(profile, scenario, times, NeverStop);
}

absl::StatusOr<StepGraph> StepGraph::Build(const Profile& profile, const Scenario& scenario,
                                           Times times, StopCheck stop) {
  return StepGraphBuilder(profile, scenario, times, stop).Build();
}

}  // namespace stepcast
