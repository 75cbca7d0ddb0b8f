#include "core/importing/common/rank_matching.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"

namespace stepcast {

namespace {

std::string_view NameOfKind(Collective kind) {
  if (kind == Collective::kBroadcast) return "broadcast";
  return kind == Collective::kReduceScatter ? "reduce_scatter" : "all_reduce";
}

class RankMatcher {
 public:
  RankMatcher(std::vector<RankPart> parts, const ProfileLimits& limits)
      : parts_(std::move(parts)), limits_(limits) {}

  absl::StatusOr<MultiRankRecording> Match() {
    absl::Status status = OrderRanks();
    if (status.ok()) status = ChooseSteps();
    if (status.ok() && !meets_at_servers()) status = CompareCollectives();
    if (status.ok()) status = MergeOperations();
    if (!status.ok()) return status;
    return Write();
  }

 private:
  static std::string NameOfRank(const RankPart& part) { return absl::StrCat("rank ", part.rank); }
  std::string NameOfStep(int64_t number) const { return parts_.front().name_of_step(number); }
  bool meets_at_servers() const { return parts_.front().meets_at_servers; }
  // Two ranks do not fit together.
  absl::Status Difference(const RankPart& part, std::string description) const {
    return ImportFault(part.path, std::move(description));
  }

  absl::Status OrderRanks() {
    std::stable_sort(parts_.begin(), parts_.end(),
                     [](const RankPart& a, const RankPart& b) { return a.rank < b.rank; });
    const auto size = static_cast<int64_t>(parts_.size());
    world_size_ = parts_.front().world_size == 0 ? size : parts_.front().world_size;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const RankPart& part = parts_[i];
      if (part.rank < 0) {
        return Difference(part, "neither it nor its name (rank3.json) says its rank");
      }
      if (i > 0 && part.rank == parts_[i - 1].rank) {
        return Difference(part, absl::StrCat(NameOfRank(part), " is in ", parts_[i - 1].path,
                                             ", too: one trace a rank"));
      }
      if (part.world_size == 0 && part.rank >= size) {
        return Difference(part, absl::StrCat("it is of ", NameOfRank(part), ", and ", size,
                                             " traces were given: those of ranks 0 to ", size - 1,
                                             " are needed, since nothing says how many there are"));
      }
      if (part.world_size != 0 && part.world_size != world_size_) {
        return Difference(
            part, absl::StrCat(NameOfRank(part), " is one of ", part.world_size, " workers, and ",
                               NameOfRank(parts_.front()), " one of ", world_size_));
      }
      if (part.rank >= world_size_) {
        return Difference(part, absl::StrCat(NameOfRank(part), " is not below ", world_size_,
                                             ", the number of workers that its recording says"));
      }
    }
    return CheckWorld();
  }

  // The number of workers of the job, of which the traces may be a sample.
  absl::Status CheckWorld() const {
    const auto size = static_cast<int64_t>(parts_.size());
    if (world_size_ > kMaxJobWorkers) {
      return Difference(
          parts_.front(),
          absl::StrCat("a job of ", world_size_, " workers, above the limit of ", kMaxJobWorkers));
    }
    if (world_size_ > size && meets_at_servers()) {
      return Difference(parts_.front(),
                        absl::StrCat(size, " recordings of ", world_size_,
                                     " workers: where they meet at parameter servers all are "
                                     "needed"));
    }
    return absl::OkStatus();
  }

  // Steps that all ranks have, by number; where no number was recorded, by place.
  absl::Status ChooseSteps() {
    for (const RankPart& part : parts_) {
      std::vector<int64_t> numbers;
      for (const RankStep& step : part.steps) numbers.push_back(step.number);
      std::sort(numbers.begin(), numbers.end());
      if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) {
        return Difference(
            part, absl::StrCat(NameOfRank(part), " has two steps of one number: ",
                               NameOfStep(*std::adjacent_find(numbers.begin(), numbers.end()))));
      }
      if (&part == &parts_.front()) {
        numbers_ = std::move(numbers);
        continue;
      }
      std::vector<int64_t> common;
      std::set_intersection(numbers_.begin(), numbers_.end(), numbers.begin(), numbers.end(),
                            std::back_inserter(common));
      if (common.empty()) {
        return Difference(
            part, absl::StrCat(NameOfRank(part), " has ", numbers.size(), " steps from ",
                               NameOfStep(numbers.front()), ", and ", NameOfRank(parts_.front()),
                               " has none of them: record the same steps"));
      }
      numbers_ = std::move(common);
    }
    for (RankPart& part : parts_) {
      std::vector<size_t>& kept = kept_.emplace_back();
      for (const int64_t number : numbers_) {
        const auto found =
            std::find_if(part.steps.begin(), part.steps.end(),
                         [&](const RankStep& step) { return step.number == number; });
        kept.push_back(static_cast<size_t>(found - part.steps.begin()));
      }
    }
    return absl::OkStatus();
  }
  const RankStep& StepOf(size_t part, size_t step) const {
    return parts_[part].steps[kept_[part][step]];
  }

  absl::Status CompareCollectives() const {
    const std::vector<RankCollective>& first = StepOf(0, 0).collectives;
    if (first.empty()) {
      return Difference(parts_.front(), absl::StrCat(NameOfRank(parts_.front()),
                                                     " has no collective: nothing says how the "
                                                     "ranks' clocks go together"));
    }
    for (size_t step = 0; step < numbers_.size(); ++step) {
      for (size_t part = 0; part < parts_.size(); ++part) {
        const std::vector<RankCollective>& here = StepOf(part, step).collectives;
        const std::string where =
            absl::StrCat(NameOfRank(parts_[part]), "'s ", NameOfStep(numbers_[step]));
        const std::string there =
            absl::StrCat(NameOfRank(parts_.front()), "'s ", NameOfStep(numbers_.front()));
        if (here.size() != first.size()) {
          return Difference(parts_[part], absl::StrCat(where, " has ", here.size(),
                                                       " collectives, ", there, " ", first.size()));
        }
        for (size_t i = 0; i < here.size(); ++i) {
          if (here[i].what != first[i].what) {
            return Difference(parts_[part],
                              absl::StrCat("collective ", i, " is ", Describe(here[i]), " in ",
                                           where, " and ", Describe(first[i]), " in ", there));
          }
          if (here[i].group_size != 0 && here[i].group_size != world_size_) {
            return Difference(parts_[part], absl::StrCat("collective ", i, " of ", where,
                                                         " is of a group of ", here[i].group_size,
                                                         " workers, not of all ", world_size_));
          }
        }
      }
    }
    return absl::OkStatus();
  }
  static std::string Describe(const RankCollective& collective) {
    return absl::StrCat(collective.what.kind == Collective::kAllReduce ? "an " : "a ",
                        AbslView(NameOfKind(collective.what.kind)), " of ",
                        collective.what.size_bytes, " bytes");
  }

  const ProfileDraft& ContentOf(size_t part) const {
    return parts_[part].imported->profile.content();
  }

  // All operations in an order that is every rank's.
  absl::Status MergeOperations() {
    for (const Operation& operation : ContentOf(0).operations) names_.push_back(operation.name);
    for (size_t part = 1; part < parts_.size(); ++part) {
      std::vector<std::string> names;
      for (const Operation& operation : ContentOf(part).operations) names.push_back(operation.name);
      if (meets_at_servers()) {
        AddNames(names);
      } else if (absl::Status status = MergeNames(part, names); !status.ok()) {
        return status;
      }
    }
    for (size_t i = 0; i < names_.size(); ++i) index_of_[names_[i]] = i;
    merged_ = ContentOf(0);
    merged_.operations.assign(names_.size(), {});
    std::vector<size_t> having(names_.size(), 0);
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (absl::Status status = TakeOperations(part, having); !status.ok()) return status;
      merged_.parameter_servers =
          std::max(merged_.parameter_servers, ContentOf(part).parameter_servers);
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      const Operation& operation = merged_.operations[i];
      if ((operation.resource == Resource::kCollective || IsTransfer(operation.resource)) &&
          having[i] != parts_.size()) {
        const size_t part = FirstWithout(operation.name);
        return Difference(parts_[part],
                          absl::StrCat(NameOfRank(parts_[part]), " lacks ", Quoted(operation.name),
                                       ", which others have"));
      }
    }
    return absl::OkStatus();
  }
  // REQUIRES: there is one.
  size_t FirstWithout(const std::string& name) const {
    size_t part = 0;
    const auto has = [&](const Operation& operation) { return operation.name == name; };
    while (std::any_of(ContentOf(part).operations.begin(), ContentOf(part).operations.end(), has))
      ++part;
    return part;
  }
  // In the first one's order, what it lacks after that.
  void AddNames(const std::vector<std::string>& names) {
    const std::set<std::string> known(names_.begin(), names_.end());
    for (const std::string& name : names) {
      if (known.count(name) == 0) names_.push_back(name);
    }
  }
  absl::Status MergeNames(size_t part, const std::vector<std::string>& names) {
    std::map<std::string, size_t> here;
    std::map<std::string, size_t> there;
    for (size_t i = 0; i < names_.size(); ++i) here[names_[i]] = i;
    for (size_t i = 0; i < names.size(); ++i) there[names[i]] = i;
    std::vector<std::string> merged;
    size_t a = 0;
    size_t b = 0;
    while (a < names_.size() || b < names.size()) {
      if (a < names_.size() && b < names.size() && names_[a] == names[b]) {
        merged.push_back(names_[a++]);
        ++b;
      } else if (a < names_.size() && there.count(names_[a]) == 0) {
        merged.push_back(names_[a++]);
      } else if (b < names.size() && here.count(names[b]) == 0) {
        merged.push_back(names[b++]);
      } else {
        const std::string mine = b < names.size() ? std::string(Quoted(names[b])) : "nothing";
        const std::string other = a < names_.size() ? std::string(Quoted(names_[a])) : "nothing";
        return Difference(parts_[part],
                          absl::StrCat(NameOfRank(parts_[part]), " runs ", mine, " where ",
                                       NameOfRank(parts_.front()), " runs ", other));
      }
    }
    names_ = std::move(merged);
    return absl::OkStatus();
  }
  absl::Status TakeOperations(size_t part, std::vector<size_t>& having) {
    const ProfileDraft& content = ContentOf(part);
    if (content.buckets != merged_.buckets) {
      return Difference(parts_[part],
                        absl::StrCat(NameOfRank(parts_[part]), " has other buckets than ",
                                     NameOfRank(parts_.front())));
    }
    for (const Operation& operation : content.operations) {
      const size_t at = index_of_[operation.name];
      Operation& merged = merged_.operations[at];
      std::vector<int32_t> waits = std::move(merged.waiting_for);
      // Bytes of the rank that keeps the most.
      const int64_t kept_bytes = std::max(merged.kept_bytes, operation.kept_bytes);
      for (const int32_t before : operation.waiting_for) {
        waits.push_back(
            static_cast<int32_t>(index_of_[content.operations[static_cast<size_t>(before)].name]));
      }
      std::sort(waits.begin(), waits.end());
      waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
      if (having[at]++ == 0) {
        merged = operation;
      } else if (merged.resource != operation.resource ||
                 merged.size_bytes != operation.size_bytes ||
                 merged.collective != operation.collective) {
        return Difference(
            parts_[part],
            absl::StrCat(Quoted(operation.name), " has ", operation.size_bytes, " bytes on ",
                         NameOfRank(parts_[part]), " and ", merged.size_bytes, " before"));
      } else if (merged.parameter_server != operation.parameter_server) {
        return Difference(parts_[part],
                          absl::StrCat(Quoted(operation.name), " is at server ",
                                       operation.parameter_server, " on ", NameOfRank(parts_[part]),
                                       " and at ", merged.parameter_server, " before"));
      }
      merged.waiting_for = std::move(waits);
      merged.kept_bytes = kept_bytes;
    }
    return absl::OkStatus();
  }

  RecordedStep StepInMerged(size_t part, size_t step) const {
    const ProfileDraft& content = ContentOf(part);
    const RecordedStep& recorded = content.steps[kept_[part][step]];
    RecordedStep merged{.start_ns = std::vector<int64_t>(names_.size(), -1),
                        .end_ns = std::vector<int64_t>(names_.size(), -1)};
    for (size_t i = 0; i < content.operations.size(); ++i) {
      const size_t at = index_of_.at(content.operations[i].name);
      merged.start_ns[at] = recorded.start_ns[i];
      merged.end_ns[at] = recorded.end_ns[i];
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      if (merged.start_ns[i] >= 0) continue;
      int64_t at_ns = 0;
      for (const int32_t before : merged_.operations[i].waiting_for)
        at_ns = std::max(at_ns, merged.end_ns[static_cast<size_t>(before)]);
      merged.start_ns[i] = merged.end_ns[i] = at_ns;
    }
    return merged;
  }

  // A profile's faults as ones of the recordings, by their place in the request.
  absl::Status AsRecordingFaults(const absl::Status& status) const {
    ErrorDetails details = DetailsOf(status);
    if (details.faults.empty()) return status;
    for (Fault& fault : details.faults) {
      fault.description = absl::StrCat(fault.field, ": ", fault.description);
      fault.field = "recordings";
    }
    return FaultsError("IMPORT_INVALID", std::move(details.faults));
  }

  std::string NoteOfSample() const {
    return absl::StrCat("A sample: ", parts_.size(), " of the job's ", world_size_,
                        " ranks. Where all of them wait for a rank that was not recorded, the wait "
                        "cannot be told from the collective's own time.");
  }

  absl::StatusOr<MultiRankRecording> Write() {
    std::vector<std::vector<RecordedStep>> steps(parts_.size());
    for (size_t part = 0; part < parts_.size(); ++part) {
      for (size_t step = 0; step < numbers_.size(); ++step)
        steps[part].push_back(StepInMerged(part, step));
    }
    MultiRankRecording recording{.profile = parts_.front().imported->profile,
                                 .step_numbers = numbers_};
    if (world_size_ > static_cast<int64_t>(parts_.size()))
      recording.job_workers = static_cast<int32_t>(world_size_);
    for (const RankCollective& collective : StepOf(0, 0).collectives)
      recording.collectives.push_back(collective.what);
    for (size_t part = 0; part < parts_.size(); ++part) {
      recording.workers.push_back(NameOfRank(parts_[part]));
      std::vector<int64_t>& begins = recording.step_begins_ns.emplace_back();
      std::vector<int64_t>& ends = recording.step_ends_ns.emplace_back();
      for (size_t step = 0; step < numbers_.size(); ++step) {
        begins.push_back(StepOf(part, step).begin_ns);
        ends.push_back(StepOf(part, step).end_ns);
      }
      if (!meets_at_servers()) continue;
      // A server of which a worker has nothing is as its clock says.
      std::vector<int64_t>& shifts = recording.server_shifts_ns.emplace_back();
      for (size_t step = 0; step < numbers_.size(); ++step) {
        const std::vector<int64_t>& of_step = StepOf(part, step).server_shifts_ns;
        shifts.insert(shifts.end(), of_step.begin(), of_step.end());
        shifts.resize((step + 1) * Index(merged_.parameter_servers));
      }
    }
    for (size_t step = 0; step < numbers_.size(); ++step) {
      for (size_t i = 0; i < recording.collectives.size(); ++i) {
        for (size_t part = 0; part < parts_.size(); ++part)
          recording.runs.push_back(StepOf(part, step).collectives[i].run);
      }
    }
    merged_.steps = std::move(steps.front());
    merged_.recording = JobRecordingOf(recording, std::move(steps));
    absl::StatusOr<Profile> profile = Profile::Create(std::move(merged_), limits_);
    if (!profile.ok()) return AsRecordingFaults(profile.status());
    recording.profile = *std::move(profile);
    recording.notes = parts_.front().imported->notes;
    const std::string steps_matched =
        numbers_.size() == 1
            ? "one step"
            : absl::StrCat(numbers_.size(), " steps from ", NameOfStep(numbers_.front()), " to ",
                           NameOfStep(numbers_.back()));
    const std::string met =
        meets_at_servers()
            ? absl::StrCat(" at ", recording.profile.parameter_servers(), " parameter servers")
            : absl::StrCat(", with ", recording.collectives.size(), " collectives in each");
    recording.notes.push_back(absl::StrCat("Matched: ", parts_.size(), " ranks in ", steps_matched,
                                           met, ". The notes above are those of ",
                                           NameOfRank(parts_.front()), "."));
    if (recording.job_workers > 0) recording.notes.push_back(NoteOfSample());
    return recording;
  }

  std::vector<RankPart> parts_;
  const ProfileLimits& limits_;
  int64_t world_size_ = 0;                 // workers of the job
  std::vector<int64_t> numbers_;           // of the steps that all have
  std::vector<std::vector<size_t>> kept_;  // by part and step: its place in the part
  std::vector<std::string> names_;         // of all operations
  std::map<std::string, size_t> index_of_;
  ProfileDraft merged_;
};

}  // namespace

absl::Status AtPath(const absl::Status& status, const std::string& path) {
  ErrorDetails details = DetailsOf(status);
  if (details.reason != "IMPORT_INVALID") return status;
  for (Fault& fault : details.faults) {
    if (fault.field.rfind(kAtRecording, 0) == 0)
      fault.field.replace(0, std::string_view(kAtRecording).size(), path);
  }
  return FaultsError("IMPORT_INVALID", std::move(details.faults));
}

int64_t RankOfName(const std::string& name) {
  const size_t at = name.rfind("rank");
  if (at == std::string::npos) return -1;
  size_t begin = at + 4;
  while (begin < name.size() && (name[begin] == '_' || name[begin] == '-')) ++begin;
  size_t end = begin;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
  int64_t rank = -1;
  const bool is_number =
      absl::SimpleAtoi(absl::string_view(name.data() + begin, end - begin), &rank);
  return is_number ? rank : -1;
}

absl::StatusOr<MultiRankRecording> ImportRanks(
    const std::vector<RankTrace>& traces, const ProfileLimits& limits,
    absl::FunctionRef<absl::StatusOr<RankPart>(const RankTrace&)> import) {
  if (traces.size() < 2 || traces.size() > kMaxRecordedWorkers) {
    return ImportFault("recordings", absl::StrCat(traces.size(), " traces are not from 2 to ",
                                                  kMaxRecordedWorkers, ", one a rank"));
  }
  std::vector<RankPart> parts;
  parts.reserve(traces.size());
  for (size_t i = 0; i < traces.size(); ++i) {
    const std::string path = absl::StrCat("recordings[", i, "]");
    absl::StatusOr<RankPart> part = import(traces[i]);
    if (!part.ok()) return AtPath(part.status(), path);
    part->path = path;
    parts.push_back(*std::move(part));
  }
  return RankMatcher(std::move(parts), limits).Match();
}

}  // namespace stepcast
