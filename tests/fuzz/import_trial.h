// One import, as ImportProfile does it, and what must come of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/convert/stored_requests.h"
#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

struct ImportInput {
  std::string_view recording;
  std::string_view graph;
  bool has_graph = false;
  // Of several workers, at least two; else empty.
  std::vector<std::string_view> recordings = {};
  bool named_by_rank = false;  // the k-th recording's file is called as of rank k; else nothing
};

// The recordings of several workers as one input, which also holds one: what stands between them.
inline constexpr char kBetweenRecordings[] = "\x1e--\x1e";
std::string JoinedRecordings(const std::vector<std::string>& recordings);
// Of `input`, which it must not outlive.
ImportInput RecordingsOf(std::string_view input);
// One of an input's recordings mutated as `mutate` does it, or in another's place.
std::string MutateRecordings(const std::string& input, const Mutation& mutation,
                             std::string (*mutate)(std::string, const Mutation&));

// A batch size of 8 and 100 MB/s.
RecordingOptions TrialOptions();

// Imports, and demands that it is refused for a reason, or makes a profile that is stored, said
// something about, and the same when the bytes come in other pieces. False: refused.
bool TryImport(const server::ImportProfileCall& call, const ImportInput& input);

}  // namespace stepcast::fuzz
