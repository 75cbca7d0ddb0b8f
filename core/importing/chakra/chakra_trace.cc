#include "core/importing/chakra/chakra_trace.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/chakra/chakra_reader.h"
#include "core/importing/common/recording_import.h"
#include "core/model/profile.h"

namespace stepcast {

namespace {

using NodeType = ChakraNode::Type;

absl::Status ChakraFault(std::string description) {
  return ImportFault(kAtRecording, std::move(description));
}

std::string Called(const ChakraNode& node) {
  return absl::StrCat("node ", node.id, " ", Quoted(node.name));
}

// By its number in the schema; kUnspecified: one that a profile has not.
Collective CollectiveOfType(int64_t type) {
  switch (type) {
    case 0:
      return Collective::kAllReduce;
    case 5:
      return Collective::kBroadcast;
    case 7:
    case 8:
      return Collective::kReduceScatter;
    default:
      return Collective::kUnspecified;
  }
}

constexpr int64_t kAllGatherType = 2;
constexpr int64_t kBarrierType = 9;

class ChakraImport {
 public:
  // `of_ranks`: one of several, whose numbers of nodes say nothing to the others.
  ChakraImport(std::vector<ChakraNode> nodes, const ChakraTraceOptions& options,
               const ProfileLimits& limits, bool of_ranks = false)
      : nodes_(std::move(nodes)), options_(options), limits_(limits), of_ranks_(of_ranks) {}

  absl::StatusOr<ImportedProfile> Make();
  // The step as it was recorded. REQUIRES: Make succeeded.
  absl::StatusOr<RankStep> Step() const;

 private:
  absl::Status ChooseNodes();
  absl::Status CheckCollective(const ChakraNode& node) const;
  absl::Status IndexDependencies();
  absl::Status Order();
  absl::Status NameCycle(const std::vector<int32_t>& unmet) const;
  absl::Status PassThrough();
  absl::Status AddOperations();
  absl::Status CheckHeld() const;
  void HoldCollectives();
  std::vector<std::string> Notes(const StepVariation& variation) const;

  std::vector<ChakraNode> nodes_;
  const ChakraTraceOptions& options_;
  const ProfileLimits& limits_;
  const bool of_ranks_;
  std::vector<bool> kept_;                          // by node
  std::vector<std::vector<int32_t>> dependencies_;  // by node, of nodes
  std::vector<int32_t> order_;                      // of nodes, each after those it waits for
  std::vector<Operation> operations_;
  std::vector<int64_t> durations_ns_;
  bool has_device_ = false;
  int64_t left_out_ = 0;  // nodes of the host
  double host_ms_ = 0;    // their time
  int64_t held_ = 0;      // collectives that wait for the computation before them
  int64_t unawaited_ = 0;
};

absl::Status ChakraImport::CheckCollective(const ChakraNode& node) const {
  if (node.collective_type == kAllGatherType) {
    return ChakraFault(
        absl::StrCat(Called(node),
                     " is an all-gather, of which comm_size is one worker's share and not the "
                     "whole: import a trace of a job that is not sharded, and ask for sharding in "
                     "the scenario"));
  }
  if (node.collective_type < 0)
    return ChakraFault(absl::StrCat(Called(node),
                                    " is a collective without comm_type: convert the trace with a "
                                    "chakra_converter that writes comm_type and comm_size"));
  if (CollectiveOfType(node.collective_type) == Collective::kUnspecified) {
    return ChakraFault(absl::StrCat(Called(node), " is a collective of comm_type ",
                                    node.collective_type,
                                    ": all-reduce (0), broadcast (5) and reduce-scatter (7) are "
                                    "read"));
  }
  if (node.size_bytes < 1)
    return ChakraFault(absl::StrCat(Called(node), " is a collective without comm_size"));
  return absl::OkStatus();
}

// The device's, or the host's where there is no device.
absl::Status ChakraImport::ChooseNodes() {
  const auto runs = [](const ChakraNode& node) {
    return node.type != NodeType::kInvalid && node.type != NodeType::kMetadata;
  };
  has_device_ = std::any_of(nodes_.begin(), nodes_.end(), [&runs](const ChakraNode& node) {
    return runs(node) && !node.on_host && node.type == NodeType::kComputation;
  });
  bool computes = false;
  int64_t computations = 0;
  int64_t collectives = 0;
  kept_.assign(nodes_.size(), false);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const ChakraNode& node = nodes_[i];
    if (!runs(node)) continue;
    if (has_device_ && node.on_host) {
      ++left_out_;
      host_ms_ += static_cast<double>(node.duration_ns) / kNsPerMs;
      continue;
    }
    if (node.type == NodeType::kSend || node.type == NodeType::kReceive) {
      return ChakraFault(absl::StrCat(Called(node),
                                      " sends to or receives from one worker, as pipelines do: "
                                      "only collectives of all workers are read"));
    }
    if (node.type == NodeType::kCollective) {
      if (node.collective_type == kBarrierType) continue;
      if (absl::Status status = CheckCollective(node); !status.ok()) return status;
      ++collectives;
    } else {
      ++computations;
      computes = computes || node.duration_ns > 0;
    }
    kept_[i] = true;
  }
  if (computations == 0) {
    return ChakraFault(absl::StrCat(
        "it has no computation", collectives > 0 ? absl::StrCat(", only ", collectives) : "",
        collectives > 0 ? (collectives == 1 ? " collective" : " collectives") : "",
        ", as a benchmark of a network has: import the trace of a training step"));
  }
  if (!computes) {
    return ChakraFault(
        "no computation in it has a duration_micros: convert a trace of PyTorch that was linked "
        "with its profile (chakra_trace_link), or import that profile itself as pytorch");
  }
  return absl::OkStatus();
}

absl::Status ChakraImport::IndexDependencies() {
  absl::flat_hash_map<int64_t, int32_t> place;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!place.emplace(nodes_[i].id, static_cast<int32_t>(i)).second)
      return ChakraFault(absl::StrCat(Called(nodes_[i]), " has an id that is taken"));
  }
  dependencies_.resize(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const int64_t id : nodes_[i].data_dependencies) {
      const auto found = place.find(id);
      if (found == place.end())
        return ChakraFault(
            absl::StrCat(Called(nodes_[i]), " waits for node ", id, ", which is not there"));
      dependencies_[i].push_back(found->second);
    }
    std::vector<int32_t>& each = dependencies_[i];
    std::sort(each.begin(), each.end());
    each.erase(std::unique(each.begin(), each.end()), each.end());
  }
  return absl::OkStatus();
}

// The next one is, of nodes that could be, the one that started first, of these the one with the
// least id. Of several ranks the order may depend on no rank's times across streams: a collective
// comes as soon as it could begin, and computations stream by stream.
absl::Status ChakraImport::Order() {
  std::vector<int32_t> unmet(nodes_.size());
  std::vector<std::vector<int32_t>> followers(nodes_.size());
  using Candidate = std::tuple<bool, int64_t, int64_t, int64_t, int32_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> next;
  const auto offer = [&](int32_t index) {
    const ChakraNode& node = nodes_[static_cast<size_t>(index)];
    next.emplace(of_ranks_ && node.type != NodeType::kCollective, of_ranks_ ? node.stream : 0,
                 node.start_ns, node.id, index);
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    unmet[i] = static_cast<int32_t>(dependencies_[i].size());
    for (const int32_t before : dependencies_[i])
      followers[static_cast<size_t>(before)].push_back(static_cast<int32_t>(i));
    if (unmet[i] == 0) offer(static_cast<int32_t>(i));
  }
  while (!next.empty()) {
    const int32_t index = std::get<4>(next.top());
    next.pop();
    order_.push_back(index);
    for (const int32_t follower : followers[static_cast<size_t>(index)]) {
      if (--unmet[static_cast<size_t>(follower)] == 0) offer(follower);
    }
  }
  return order_.size() == nodes_.size() ? absl::OkStatus() : NameCycle(unmet);
}

absl::Status ChakraImport::NameCycle(const std::vector<int32_t>& unmet) const {
  const auto is_left = [&unmet](int32_t index) { return unmet[static_cast<size_t>(index)] > 0; };
  const auto step = [&](int32_t index) {
    const std::vector<int32_t>& before = dependencies_[static_cast<size_t>(index)];
    return *std::find_if(before.begin(), before.end(), is_left);
  };
  // Each of those left waits for another of them, so as many steps lead into the cycle.
  const auto first = std::find_if(unmet.begin(), unmet.end(), [](int32_t u) { return u > 0; });
  auto at = static_cast<int32_t>(first - unmet.begin());
  for (size_t i = 0; i < nodes_.size(); ++i) at = step(at);
  std::string names = Called(nodes_[static_cast<size_t>(at)]);
  constexpr int kMostNames = 8;
  int32_t next = step(at);
  for (int named = 1; next != at && named < kMostNames; ++named, next = step(next))
    absl::StrAppend(&names, " waits for ", Called(nodes_[static_cast<size_t>(next)]));
  absl::StrAppend(&names, " waits for ",
                  next == at ? Called(nodes_[static_cast<size_t>(at)]) : "...");
  return ChakraFault(absl::StrCat("a cycle: ", names));
}

// Nodes that are not kept are passed through: who waits for it waits for what it waits for.
absl::Status ChakraImport::PassThrough() {
  std::vector<std::vector<int32_t>> kept_before(nodes_.size());
  int64_t found = 0;
  for (const int32_t index : order_) {
    std::vector<int32_t>& before = kept_before[static_cast<size_t>(index)];
    for (const int32_t dependency : dependencies_[static_cast<size_t>(index)]) {
      const auto at = static_cast<size_t>(dependency);
      if (kept_[at]) {
        before.push_back(dependency);
      } else {
        before.insert(before.end(), kept_before[at].begin(), kept_before[at].end());
      }
      found += static_cast<int64_t>(kept_[at] ? 1 : kept_before[at].size());
      if (found > limits_.max_dependencies) {
        return ChakraFault(
            absl::StrCat("dependencies through the host's nodes: ",
                         OverLimit(found, "max_dependencies", limits_.max_dependencies)));
      }
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
  }
  dependencies_ = std::move(kept_before);
  return absl::OkStatus();
}

absl::Status ChakraImport::AddOperations() {
  std::vector<int32_t> place(nodes_.size(), -1);
  std::map<int64_t, int32_t> streams;
  absl::flat_hash_map<std::string, int64_t> called;
  for (const int32_t index : order_) {
    const auto at = static_cast<size_t>(index);
    if (!kept_[at]) continue;
    const ChakraNode& node = nodes_[at];
    place[at] = static_cast<int32_t>(operations_.size());
    const int64_t number = of_ranks_ ? called[node.name]++ : node.id;
    Operation operation{.name = absl::StrCat(node.name, "/", number),
                        .resource = Resource::kWorker};
    for (const int32_t before : dependencies_[at])
      operation.waiting_for.push_back(place[static_cast<size_t>(before)]);
    std::sort(operation.waiting_for.begin(), operation.waiting_for.end());
    const bool meets = node.type == NodeType::kCollective;
    if (meets) {
      operation.resource = Resource::kCollective;
      operation.collective = CollectiveOfType(node.collective_type);
      operation.size_bytes = node.size_bytes;
    } else {
      operation.stream =
          streams.emplace(node.stream, static_cast<int32_t>(streams.size())).first->second;
    }
    operations_.push_back(std::move(operation));
    durations_ns_.push_back(meets ? 0 : node.duration_ns);
  }
  const auto count = static_cast<int64_t>(operations_.size());
  if (count > limits_.max_operations)
    return ChakraFault(OverLimit(count, "max_operations", limits_.max_operations));
  const auto used = static_cast<int64_t>(streams.size());
  if (used > limits_.max_streams)
    return ChakraFault(OverLimit(used, "max_streams", limits_.max_streams));
  return absl::OkStatus();
}

// A device's collective begins when what was launched before it has ended; where no dependency says
// so, the computation before it in order holds it.
void ChakraImport::HoldCollectives() {
  std::vector<bool> awaited(operations_.size(), false);
  int32_t last = -1;
  for (size_t i = 0; i < operations_.size(); ++i) {
    Operation& operation = operations_[i];
    for (const int32_t before : operation.waiting_for) awaited[static_cast<size_t>(before)] = true;
    if (operation.resource == Resource::kWorker) {
      last = static_cast<int32_t>(i);
      continue;
    }
    const bool waits = std::any_of(
        operation.waiting_for.begin(), operation.waiting_for.end(), [this](int32_t before) {
          return operations_[static_cast<size_t>(before)].resource == Resource::kWorker;
        });
    if (waits || last < 0) continue;
    operation.waiting_for.push_back(last);
    ++held_;
  }
  for (size_t i = 0; i < operations_.size(); ++i)
    unawaited_ += operations_[i].resource == Resource::kCollective && !awaited[i] ? 1 : 0;
}

std::vector<std::string> ChakraImport::Notes(const StepVariation& variation) const {
  int64_t bytes = 0;
  int64_t collectives = 0;
  double ms = 0;
  for (size_t i = 0; i < operations_.size(); ++i) {
    bytes += operations_[i].size_bytes;
    collectives += operations_[i].resource == Resource::kCollective ? 1 : 0;
    ms += static_cast<double>(durations_ns_[i]) / kNsPerMs;
  }
  std::vector<std::string> notes = {absl::StrFormat(
      "Found %d computations of %.3f ms in all, and %d collectives of %d bytes.",
      static_cast<int64_t>(operations_.size()) - collectives, ms, collectives, bytes)};
  if (left_out_ > 0) {
    notes.push_back(absl::StrFormat(
        "Left out: %d nodes of the host, %.3f ms of its own, through which dependencies lead: a "
        "job whose device waits for the host is slower than predicted.",
        left_out_, host_ms_));
  }
  notes.emplace_back("Left out: control dependencies, which say who called and not what waits.");
  if (held_ > 0) {
    notes.push_back(absl::StrCat("Assumed: ", held_,
                                 " collectives without a dependency on a computation wait for the "
                                 "one before them."));
  }
  if (unawaited_ > 0) {
    notes.push_back(absl::StrCat("Found ", unawaited_,
                                 " collectives that nothing in the trace waits for; the step ends "
                                 "after them."));
  }
  if (!of_ranks_) notes.push_back(NoteOn(variation));
  return notes;
}

absl::StatusOr<ImportedProfile> ChakraImport::Make() {
  absl::Status status = ChooseNodes();
  if (status.ok()) status = IndexDependencies();
  if (status.ok()) status = Order();
  if (status.ok()) status = PassThrough();
  if (status.ok() && of_ranks_) status = CheckHeld();
  if (status.ok()) status = AddOperations();
  if (!status.ok()) return status;
  HoldCollectives();
  FaultList faults;
  const StepVariation variation =
      ResolveStepVariation(options_.variation, operations_.size(), limits_, faults);
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
  const RecordingOptions& recording = options_.recording;
  std::vector<std::string> notes = Notes(variation);
  ProfileDraft draft{.display_name = recording.model,
                     .model = recording.model,
                     .framework = "chakra",
                     .batch_size = recording.batch_size,
                     .platform = recording.platform};
  draft.steps = MakeSteps(operations_, durations_ns_, recording.platform, variation);
  draft.operations = std::move(operations_);
  absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits_);
  if (!profile.ok()) return AsImportFaults(profile.status());
  return ImportedProfile{.profile = *std::move(profile), .notes = std::move(notes)};
}

// In time a collective's place among computations is not the same on every rank: those that wait
// for others go on computing meanwhile.
absl::Status ChakraImport::CheckHeld() const {
  int64_t first_ns = INT64_MAX;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (kept_[i] && nodes_[i].type != NodeType::kCollective)
      first_ns = std::min(first_ns, nodes_[i].start_ns);
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const ChakraNode& node = nodes_[i];
    if (!kept_[i] || node.type != NodeType::kCollective || node.start_ns <= first_ns) continue;
    const bool waits =
        std::any_of(dependencies_[i].begin(), dependencies_[i].end(), [this](int32_t before) {
          return nodes_[static_cast<size_t>(before)].type != NodeType::kCollective;
        });
    if (!waits) {
      return ChakraFault(absl::StrCat(Called(node),
                                      " depends on no computation (data_deps): its place in time "
                                      "says which it waits for on one rank, and not on several"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RankStep> ChakraImport::Step() const {
  RankStep step{.begin_ns = INT64_MAX, .end_ns = INT64_MIN};
  for (const int32_t index : order_) {
    const auto at = static_cast<size_t>(index);
    if (!kept_[at]) continue;
    const ChakraNode& node = nodes_[at];
    const CollectiveRun run{.start_ns = node.start_ns, .end_ns = node.start_ns + node.duration_ns};
    step.begin_ns = std::min(step.begin_ns, run.start_ns);
    step.end_ns = std::max(step.end_ns, run.end_ns);
    if (node.type != NodeType::kCollective) continue;
    if (node.duration_ns == 0) {
      return ChakraFault(absl::StrCat(Called(node),
                                      " has no duration_micros: when a rank enters and leaves a "
                                      "collective says how the ranks' clocks go together"));
    }
    const Collective kind = CollectiveOfType(node.collective_type);
    step.collectives.push_back({.what = {.name = NameOfCollective(kind, step.collectives.size()),
                                         .kind = kind,
                                         .size_bytes = node.size_bytes},
                                .run = run});
  }
  return step;
}

absl::StatusOr<std::vector<ChakraNode>> ReadNodes(ByteSource& recording,
                                                  const ProfileLimits& limits, StopCheck stop) {
  absl::StatusOr<std::vector<ChakraNode>> nodes = ReadChakraTrace(recording, limits, stop);
  if (nodes.ok() && nodes->empty()) return ChakraFault("it has no nodes");
  return nodes;
}

absl::StatusOr<RankPart> RankPartOf(const RankTrace& trace, const ChakraTraceOptions& options,
                                    const ProfileLimits& limits, StopCheck stop) {
  absl::StatusOr<std::vector<ChakraNode>> nodes = ReadNodes(*trace.recording, limits, stop);
  if (!nodes.ok()) return nodes.status();
  const bool has_starts = std::any_of(nodes->begin(), nodes->end(),
                                      [](const ChakraNode& node) { return node.start_ns != 0; });
  if (!has_starts) {
    return ChakraFault(
        "no node in it has a start_time_micros, which says how the ranks' steps go together");
  }
  ChakraImport import(*std::move(nodes), options, limits, /*of_ranks=*/true);
  absl::StatusOr<ImportedProfile> imported = import.Make();
  if (!imported.ok()) return imported.status();
  absl::StatusOr<RankStep> step = import.Step();
  if (!step.ok()) return step.status();
  return RankPart{.rank = RankOfChakraName(trace.name),
                  .name_of_step = [](int64_t /*number*/) { return std::string("step"); },
                  .steps = {*std::move(step)},
                  .imported = *std::move(imported)};
}

}  // namespace

absl::StatusOr<ImportedProfile> ImportChakraTrace(ByteSource& recording,
                                                  const ChakraTraceOptions& options,
                                                  const ProfileLimits& limits, StopCheck stop) {
  FaultList faults;
  CheckRecordingOptions(options.recording, limits, faults);
  ResolveStepVariation(options.variation, 0, limits, faults);
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
  absl::StatusOr<std::vector<ChakraNode>> nodes = ReadNodes(recording, limits, stop);
  if (!nodes.ok()) return nodes.status();
  return ChakraImport(*std::move(nodes), options, limits).Make();
}

int64_t RankOfChakraName(const std::string& name) {
  if (const int64_t rank = RankOfName(name); rank >= 0) return rank;
  constexpr std::string_view kCompressed = ".gz";
  const size_t whole =
      absl::EndsWith(name, AbslView(kCompressed)) ? name.size() - kCompressed.size() : name.size();
  const size_t ending = whole == 0 ? std::string::npos : name.rfind('.', whole - 1);
  if (ending == std::string::npos) return -1;
  size_t begin = ending;
  while (begin > 0 && absl::ascii_isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
  int64_t rank = -1;
  const bool is_number =
      absl::SimpleAtoi(absl::string_view(name.data() + begin, ending - begin), &rank);
  return is_number ? rank : -1;
}

absl::StatusOr<MultiRankRecording> ImportChakraRanks(const std::vector<RankTrace>& traces,
                                                     const ChakraTraceOptions& options,
                                                     const ProfileLimits& limits, StopCheck stop) {
  FaultList faults;
  CheckRecordingOptions(options.recording, limits, faults);
  const StepVariationDraft& asked = options.variation;
  if (asked.own.value_or(0) != 0 || asked.common.value_or(0) != 0 || asked.steps.has_value()) {
    faults.Add(asked.own.value_or(0) != 0      ? "step_time_variation"
               : asked.common.value_or(0) != 0 ? "common_time_variation"
                                               : "steps",
               "given, and times of several workers are as recorded");
  }
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
  ChakraTraceOptions as_recorded = options;
  as_recorded.variation = {.own = 0, .common = 0};
  return ImportRanks(traces, limits, [&](const RankTrace& trace) {
    return RankPartOf(trace, as_recorded, limits, stop);
  });
}

}  // namespace stepcast
