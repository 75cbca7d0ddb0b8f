// The warnings of several predictions, each once: what weakens an answer that is made of them.
//
// Warnings that differ only in their numbers are one, with the numbers of the first. Threads: pure
// functions of their arguments.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/predict/throughput.h"

namespace stepcast {

struct WarningGroup {
  std::string text;           // of its first
  bool alike = true;          // all have this text
  std::vector<size_t> items;  // whose warning it is, ascending
};

// In the order of their first items. Empty texts are no warnings. Cost: linear in the texts' bytes,
// times the number of groups.
std::vector<WarningGroup> GroupWarnings(const std::vector<std::string>& warnings);

// `2-8, 16 workers: TEXT`, or `2-8, 16 workers, the numbers are those for 2: TEXT`, one a group.
std::vector<std::string> WarningsByWorkers(const std::vector<Prediction>& predictions);

// `TAC, GRAPH: TEXT`, likewise. REQUIRES: as many names as warnings.
std::vector<std::string> WarningsByName(const std::vector<std::string>& names,
                                        const std::vector<std::string>& warnings);

}  // namespace stepcast
