// The traces of several ranks of one job, made one recording.
//
// Each is read by itself, whatever its format; then ranks are ordered, steps matched by their
// number, and the collectives of each step by kind, group, order and size. Programs that are alike
// are one: ranks may differ in pieces of computation that took no time on some of them, and in
// nothing else. Where workers meet at parameter servers operations are matched by name alone, for
// in time every worker's stand in another order, and all must have the same transfers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "core/importing/common/byte_source.h"
#include "core/importing/common/recording_import.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/profile.h"

namespace stepcast {

struct RankTrace {
  ByteSource* recording = nullptr;
  std::string name;  // of its file, which says the rank where the trace does not (RankOfName)
};

// A collective of one rank, with times on its clock.
struct RankCollective {
  MatchedCollective what;
  int32_t group_size = 0;  // workers; 0: not known
  CollectiveRun run;
};

struct RankStep {
  int64_t number = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<RankCollective> collectives;  // in the order of their launch
  std::vector<int64_t> server_shifts_ns;  // with parameter servers: WorkerRecording's, of the step
};

// The part of a trace that is kept.
struct RankPart {
  std::string path;        // of its recording, in faults: "recordings[2]"
  int64_t rank = -1;       // -1: not known
  int64_t world_size = 0;  // 0: not known
  std::string (*name_of_step)(int64_t number) = nullptr;  // "ProfilerStep#7"
  // Its worker meets the others at parameter servers: it has no collectives. Like all others' here.
  bool meets_at_servers = false;
  std::vector<RankStep> steps;
  // Its profile, whose steps are parallel to these. Never empty once read.
  std::optional<ImportedProfile> imported;
};

// The faults at kAtRecording at `path` instead.
absl::Status AtPath(const absl::Status& status, const std::string& path);

// The number behind the last "rank" of a name; -1: there is none.
int64_t RankOfName(const std::string& name);

// `import` gives what is kept of one trace, but for its path; traces are read one after the other.
// Failure: INVALID_ARGUMENT, reason IMPORT_INVALID: what it fails with, the trace's place in the
// path (`recordings[2]`); there, too, the first difference between two ranks: a rank that is there
// twice or of another world, no step in common, another number, kind, size or group of
// collectives, or another operation; ranks that are missing, where they meet at parameter servers
// or no recording says how many there are, for else the traces are a sample (JobRecording); at
// `recordings` fewer than 2 traces, more than kMaxRecordedWorkers, or what a profile may not have.
absl::StatusOr<MultiRankRecording> ImportRanks(
    const std::vector<RankTrace>& traces, const ProfileLimits& limits,
    absl::FunctionRef<absl::StatusOr<RankPart>(const RankTrace&)> import);

}  // namespace stepcast
