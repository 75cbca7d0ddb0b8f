// The notes of an import of RunMetadata on its recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/importing/recorded_operations.h"
#include "core/importing/recorded_rows.h"
#include "core/importing/run_metadata_reader.h"
#include "core/importing/step_choice.h"

namespace stepcast {

struct RunMetadataFindings {
  PassedOver passed_over;
  size_t steps = 0;
  bool partitioned = true;    // dependencies come from partition graphs
  bool graph_unused = false;  // one was given, too
  int64_t unknown_nodes = 0;  // that ran and are not in the graph
  std::string unknown_node;   // the first of them
};

// A sentence each: what was found, what was left out, what was put right, what was assumed.
std::vector<std::string> NotesOn(const RunMetadataFindings& found, const RecordedRows& rows,
                                 const StepChoice& choice, const RecordedOperations& made);

}  // namespace stepcast
