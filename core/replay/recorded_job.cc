#include "core/replay/recorded_job.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

namespace {

// Workers that began farther apart are not simulated.
constexpr int64_t kMostApartNs = 2 * int64_t{86'400'000'000'000};

absl::StatusOr<std::vector<Span>> LengthsOf(const JobRecording& recording, StopCheck stop) {
  const absl::StatusOr<std::vector<double>> means = CollectiveSecondsOf(recording, stop);
  if (!means.ok()) return means.status();
  std::vector<Span> lengths;
  lengths.reserve(means->size());
  for (const double seconds : *means) lengths.push_back(FromSeconds(std::clamp(seconds, 0.0, 1e6)));
  return lengths;
}

absl::Status Unmatched(const std::string& description) {
  return MakeError(absl::StatusCode::kFailedPrecondition, description,
                   {.reason = "COLLECTIVES_UNMATCHED"});
}

absl::Status CheckCollectives(const std::vector<PlannedCollective>& planned,
                              const std::vector<MatchedCollective>& recorded) {
  if (planned.size() != recorded.size()) {
    return Unmatched(absl::StrCat("a step of the profile has ", planned.size(),
                                  " collectives, and ", recorded.size(), " were recorded"));
  }
  for (size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].kind != recorded[i].kind) {
      return Unmatched(absl::StrCat("collective ", i, " of a step, of ", planned[i].bytes,
                                    " bytes, was recorded as ", recorded[i].name, " of ",
                                    recorded[i].size_bytes, " bytes"));
    }
  }
  return absl::OkStatus();
}

// Transfers as messages: sent when the last of what they wait for on the other end had ended, on
// the clock of the machine that it ran on.
class ServerMessages {
 public:
  ServerMessages(const MultiRankRecording& recording, StopCheck stop)
      : recording_(recording), operations_(recording.profile.operations()), pace_(stop) {}

  absl::StatusOr<RecordedExchanges> Find() {
    found_.nodes = recording_.workers;
    for (int32_t server = 0; server < recording_.profile.parameter_servers(); ++server)
      found_.nodes.push_back(NameOfServer(server));
    for (int32_t worker = 0; worker < recording_.worker_count(); ++worker) {
      for (size_t i = 0; i < operations_.size(); ++i) {
        if (!IsTransfer(operations_[i].resource)) continue;
        found_.families.push_back(
            absl::StrCat(operations_[i].name, " of ", recording_.workers[Index(worker)]));
        for (int32_t step = 0; step < recording_.step_count(); ++step) {
          if (!pace_.GoesOn(1)) return pace_.status();
          AddMessage(worker, step, i);
        }
      }
    }
    LeaveOutServersWithoutMessages();
    return std::move(found_);
  }

 private:
  void LeaveOutServersWithoutMessages() {
    std::vector<bool> has_messages(found_.nodes.size(), false);
    std::fill_n(has_messages.begin(), recording_.workers.size(), true);
    for (const RecordedMessage& message : found_.messages)
      has_messages[Index(message.sender)] = has_messages[Index(message.receiver)] = true;
    std::vector<int32_t> place;
    std::vector<std::string> kept;
    for (size_t node = 0; node < found_.nodes.size(); ++node) {
      place.push_back(static_cast<int32_t>(kept.size()));
      if (has_messages[node]) kept.push_back(std::move(found_.nodes[node]));
    }
    for (RecordedMessage& message : found_.messages) {
      message.sender = place[Index(message.sender)];
      message.receiver = place[Index(message.receiver)];
    }
    found_.nodes = std::move(kept);
  }

  void AddMessage(int32_t worker, int32_t step, size_t index) {
    const Operation& transfer = operations_[index];
    const RecordedStep& recorded = recording_.profile.steps_of(worker)[Index(step)];
    std::optional<int64_t> sent_ns;
    for (const int32_t before : transfer.waiting_for) {
      if (IsOnWorkersClock(operations_[Index(before)].resource) !=
          IsOnWorkersClock(transfer.resource))
        sent_ns = std::max(sent_ns.value_or(INT64_MIN), recorded.end_ns[Index(before)]);
    }
    if (!sent_ns.has_value()) return;
    const std::vector<int64_t>& shifts = recording_.server_shifts_ns[Index(worker)];
    const size_t servers = Index(recording_.profile.parameter_servers());
    const int64_t shift =
        shifts.empty() ? 0 : shifts[Index(step) * servers + Index(transfer.parameter_server)];
    const int64_t begin_ns = recording_.step_begins_ns[Index(worker)][Index(step)];
    const bool downloads = transfer.resource == Resource::kDownlink;
    const int32_t server = recording_.worker_count() + transfer.parameter_server;
    const int64_t at_sender_ns = begin_ns + *sent_ns - (downloads ? shift : 0);
    const int64_t at_receiver_ns = begin_ns - (downloads ? 0 : shift);
    found_.messages.push_back({.family = static_cast<int32_t>(found_.families.size()) - 1,
                               .step = step,
                               .sender = downloads ? server : worker,
                               .receiver = downloads ? worker : server,
                               .send_start_ns = at_sender_ns,
                               .send_end_ns = at_sender_ns,
                               .receive_start_ns = at_receiver_ns + recorded.start_ns[index],
                               .receive_end_ns = at_receiver_ns + recorded.end_ns[index]});
  }

  const MultiRankRecording& recording_;
  const std::vector<Operation>& operations_;
  PacedStopCheck pace_;
  RecordedExchanges found_;
};

// The job as it was recorded, whatever it met in, on links of equal shares.
absl::StatusOr<Scenario> ScenarioOf(const MultiRankRecording& recording, StopCheck stop) {
  ScenarioDraft asked{.workers = recording.worker_count()};
  if (recording.has_servers()) {
    asked.communication = ParameterServersDraft{.link_sharing = EqualShares{},
                                                .transfer_order = TransferOrder::kGraph};
    return ResolveScenario(recording.profile, asked);
  }
  const absl::StatusOr<int32_t> at_once = CollectivesAtOnce(*recording.profile.recording(), stop);
  if (!at_once.ok()) return at_once.status();
  asked.communication = AllReduceDraft{};
  absl::StatusOr<Scenario> scenario = ResolveScenario(recording.profile, asked);
  if (scenario.ok()) std::get<AllReduce>(scenario->communication).concurrent_collectives = *at_once;
  return scenario;
}

// The recorded collectives, as many of them at once, in place of what links would make of them.
absl::Status TakeRecordedCollectives(const MultiRankRecording& recording, StopCheck stop,
                                     RecordedJob& made) {
  if (absl::Status status = CheckCollectives(made.program.collectives, recording.collectives);
      !status.ok())
    return status;
  absl::StatusOr<std::vector<Span>> lengths = LengthsOf(*recording.profile.recording(), stop);
  if (!lengths.ok()) return lengths.status();
  made.job.joint.lengths = *std::move(lengths);
  return absl::OkStatus();
}

}  // namespace

std::string NameOfServer(int32_t server) { return absl::StrCat("server ", server); }

absl::StatusOr<RecordedExchanges> ExchangesOf(const MultiRankRecording& recording, StopCheck stop) {
  if (recording.has_servers()) return ServerMessages(recording, stop).Find();
  PacedStopCheck pace(stop);
  RecordedExchanges exchanges{.nodes = recording.workers};
  for (const MatchedCollective& collective : recording.collectives)
    exchanges.families.push_back(collective.name);
  // At once: to move them all again and again would take longer than a stop may.
  exchanges.collectives.reserve(Index(recording.step_count()) * recording.collectives.size());
  for (int32_t step = 0; step < recording.step_count(); ++step) {
    for (size_t i = 0; i < recording.collectives.size(); ++i) {
      if (!pace.GoesOn(recording.worker_count())) return pace.status();
      RecordedCollective& collective = exchanges.collectives.emplace_back(RecordedCollective{
          .family = static_cast<int32_t>(i),
          .step = step,
          .ends_together = recording.collectives[i].kind != Collective::kBroadcast});
      collective.members.reserve(recording.workers.size());
      for (int32_t worker = 0; worker < recording.worker_count(); ++worker) {
        const CollectiveRun& run = recording.run(step, i, worker);
        collective.members.push_back(
            {.node = worker, .start_ns = run.start_ns, .end_ns = run.end_ns});
      }
    }
  }
  return exchanges;
}

absl::StatusOr<RecordedJob> RecordedJobOf(const MultiRankRecording& recording,
                                          const std::vector<NodeClock>& clocks, StopCheck stop) {
  assert(clocks.size() == recording.workers.size());
  const absl::StatusOr<Scenario> scenario = ScenarioOf(recording, stop);
  if (!scenario.ok()) return scenario.status();
  absl::StatusOr<JobProgram> program = BuildJobProgram(recording.profile, *scenario, stop);
  if (!program.ok()) return program.status();
  RecordedJob made{.program = *std::move(program)};
  made.job = JobOf(made.program, std::make_shared<const Ranking>(), *scenario);
  if (absl::Status status = TakeRecordedCollectives(recording, stop, made); !status.ok())
    return status;
  made.job.drawing = StepDrawing::kReplay;

  std::vector<int64_t> begins;
  for (size_t worker = 0; worker < clocks.size(); ++worker)
    begins.push_back(clocks[worker].ToCommon(recording.step_begins_ns[worker].front()));
  const int64_t first = *std::min_element(begins.begin(), begins.end());
  if (*std::max_element(begins.begin(), begins.end()) - first > kMostApartNs)
    return SimulatedTimeExhausted();
  made.options = {.steps_per_worker = recording.step_count(), .keep_step_ends = true};
  double between = 0;
  PacedStopCheck pace(stop);
  for (size_t worker = 0; worker < clocks.size(); ++worker) {
    made.options.start_offsets.push_back(Nanoseconds(begins[worker] - first));
    std::vector<Span>& ends = made.recorded_ends.emplace_back();
    const std::vector<int64_t>& step_begins = recording.step_begins_ns[worker];
    const std::vector<int64_t>& step_ends = recording.step_ends_ns[worker];
    for (size_t step = 0; step < step_ends.size(); ++step) {
      if (!pace.GoesOn(1)) return pace.status();
      ends.push_back(Nanoseconds(clocks[worker].ToCommon(step_ends[step]) - first));
      if (step > 0) between += static_cast<double>(step_begins[step] - step_ends[step - 1]);
    }
  }
  const auto joints = static_cast<double>(clocks.size()) *
                      static_cast<double>(std::max(1, recording.step_count() - 1));
  made.between_steps_seconds = between / joints / 1e9;
  return made;
}

RunOptions OptionsToFollow(const RecordedJob& job) {
  RunOptions options = job.options;
  const int64_t of_step =
      std::max<int64_t>(1, job.program.program->chunk_count() * job.job.workers());
  options.steps_per_worker = static_cast<int32_t>(
      std::clamp<int64_t>(kMaxFollowedOperations / of_step, 1, options.steps_per_worker));
  options.keep_step_ends = false;
  return options;
}

absl::StatusOr<RecordingReplay> ReplayRecording(const MultiRankRecording& recording,
                                                const std::vector<NodeClock>& clocks,
                                                StopCheck stop) {
  const absl::StatusOr<RecordedJob> made = RecordedJobOf(recording, clocks, stop);
  if (!made.ok()) return made.status();
  const absl::StatusOr<RunResult> result = Simulate(made->job, made->options, stop);
  if (!result.ok()) return result.status();
  RecordingReplay replay{.begins = made->options.start_offsets,
                         .recorded_ends = made->recorded_ends,
                         .between_steps_seconds = made->between_steps_seconds};
  const auto steps = static_cast<size_t>(recording.step_count());
  const double counted = static_cast<double>(steps) * static_cast<double>(clocks.size());
  for (size_t worker = 0; worker < clocks.size(); ++worker) {
    std::vector<Span>& ends = replay.replayed_ends.emplace_back();
    for (size_t step = 0; step < steps; ++step)
      ends.push_back(result->step_ends[worker][step] - Instant{});
    const Span begin = made->options.start_offsets[worker];
    replay.replayed_step_seconds += ToSeconds(ends.back() - begin) / counted;
    replay.recorded_step_seconds +=
        ToSeconds(replay.recorded_ends[worker].back() - begin) / counted;
  }
  replay.waiting_seconds = result->waiting_fraction * replay.replayed_step_seconds;
  return replay;
}

}  // namespace stepcast
