// The warnings of several predictions, each once: what weakens an answer that is made of them.
//
// Warnings of one reason that differ only in their numbers are one, with the numbers of the first.
// Threads: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/predict/throughput.h"

namespace stepcast {

struct WarningGroup {
  Warning warning;            // the first
  bool alike = true;          // all have its message
  std::vector<size_t> items;  // whose warning it is, ascending
};

// In the order of their first items. Cost: linear in the messages' bytes, times the number of
// groups.
std::vector<WarningGroup> GroupWarnings(const std::vector<std::vector<Warning>>& by_item);

// `2-8, 16 workers: TEXT`, or `2-8, 16 workers, the numbers are those for 2: TEXT`, one a group.
std::vector<Warning> WarningsByWorkers(const std::vector<Prediction>& predictions);

// `TAC, GRAPH: TEXT`, likewise. REQUIRES: as many names as items.
std::vector<Warning> WarningsByName(const std::vector<std::string>& names,
                                    const std::vector<std::vector<Warning>>& by_item);

}  // namespace stepcast
