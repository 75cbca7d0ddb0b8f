// The operations of a graph, grouped by the downloads they depend on, directly or through others
// (TicTac's op.dep; a download depends on itself).
//
// Meaning: operations of one group have the same set of downloads and hang together; two groups may
// have the same set. Which download completes changes nothing within a group, so orders are
// computed on groups: a ResNet of 4,000 operations has a few hundred. Numbers: groups in ascending
// order of download_count. Dependencies go from a group only to groups with more downloads, so that
// order is topological. Threads: immutable after Build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/orders/transfer_graph.h"

namespace stepcast {

class DependencyGroups {
 public:
  struct Group {
    int32_t download_count = 0;  // in its set
    bool computes = false;       // some operation of it is a computation
    Span computation;            // the time of its computations
  };

  // Cost: O((operations + dependencies) x downloads / 256).
  // Failure: what `stop` returns.
  static absl::StatusOr<DependencyGroups> Build(const TransferGraph& graph, StopCheck stop);

  int32_t size() const { return static_cast<int32_t>(groups_.size()); }
  const std::vector<Group>& groups() const { return groups_; }
  // The group of each of graph.downloads().
  const std::vector<int32_t>& download_groups() const { return download_groups_; }
  // Ascending, distinct.
  std::span<const int32_t> dependents(int32_t group) const {
    return Of(dependents_, first_dependent_, group);
  }
  // The groups that it depends on itself. Ascending, distinct.
  std::span<const int32_t> dependencies(int32_t group) const {
    return Of(dependencies_, first_dependency_, group);
  }

 private:
  DependencyGroups() = default;
  static std::span<const int32_t> Of(const std::vector<int32_t>& all,
                                     const std::vector<size_t>& first, int32_t group) {
    const auto at = static_cast<size_t>(group);
    return {all.data() + first[at], all.data() + first[at + 1]};
  }
  // Fills dependencies_ from dependents_.
  void Reverse();
  // `group_of` by operation.
  absl::Status Contract(const TransferGraph& graph, const std::vector<int32_t>& group_of,
                        StopCheck stop);

  std::vector<Group> groups_;
  std::vector<int32_t> download_groups_;
  std::vector<int32_t> dependents_;
  std::vector<size_t> first_dependent_;  // size() + 1 entries
  std::vector<int32_t> dependencies_;
  std::vector<size_t> first_dependency_;
};

}  // namespace stepcast
