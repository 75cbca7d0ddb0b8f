// One import, as ImportProfile does it, and what must come of it.
#pragma once

#include <string_view>
#include <vector>

#include "server/convert/profile_requests.h"

namespace stepcast::fuzz {

struct ImportInput {
  std::string_view recording;
  std::string_view graph;
  bool has_graph = false;
  // Of several workers, at least two; else empty.
  std::vector<std::string_view> recordings = {};
};

// A batch size of 8 and 100 MB/s.
RecordingOptions TrialOptions();

// Imports, and demands that it is refused for a reason, or makes a profile that is stored, said
// something about, and the same when the bytes come in other pieces. False: refused.
bool TryImport(const server::ImportProfileCall& call, const ImportInput& input);

}  // namespace stepcast::fuzz
