// The downloads that operations of a step wait for: groups of operations with the same ones, and
// those that are outstanding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/index.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/orders/transfer_graph.h"

namespace stepcast {

// The operations of a graph, grouped by the downloads they depend on, directly or through others
// (TicTac's op.dep; a download depends on itself).
//
// Meaning: operations of one group have the same set of downloads and hang together; two groups may
// have the same set. Which download completes changes nothing within a group, so orders are
// computed on groups: a ResNet of 4,000 operations has a few hundred. Numbers: groups in ascending
// order of download_count. Dependencies go from a group only to groups with more downloads, so that
// order is topological. Threads: immutable after Build.
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

// The downloads that have not travelled yet, and what completing each would bring: TicTac's
// properties M, P and M+.
//
// Source: TicTac (SysML 2019), section 4.1 and Algorithm 1. P and M+ look at computations only:
// they are what a download can set free or hold up. Downloads are numbered as in
// TransferGraph::downloads(). Threads: none. Borrows the groups.

// More than any time.
inline constexpr Span kNever{INT64_MAX};

class OutstandingDownloads {
 public:
  // All downloads, each taking its time.
  // Cost: O((groups + dependencies) x downloads / 256), and a look at a table of sums for each 8
  // downloads of a group. Failure: what `stop` returns.
  static absl::StatusOr<OutstandingDownloads> Create(const DependencyGroups& groups,
                                                     std::vector<Span> times, StopCheck stop);

  // M: what it takes to transfer it.
  Span transfer_time(size_t download) const { return times_[download]; }
  // P: the time of the computations that wait for it alone.
  Span freed_computation(size_t download) const { return freed_[download]; }
  // M+: the least time of all the transfers that some computation waits for, it and others among
  // them; kNever where there is none.
  Span impending_load(size_t download) const {
    return LeastLoadFrom(groups_->download_groups()[download]);
  }

  // The load of the downloads that have to travel before a group's operations can all be done.
  Span load(int32_t group) const { return waiting_[Index(group)].load; }

  // It has travelled. Cost: linear in the groups that depend on it, and in those whose M+ changes
  // by that, with their dependencies; and a look at a bit for each group. REQUIRES: it is
  // outstanding.
  void Remove(size_t download);
  // Groups and dependencies looked at so far: the unit of StopCheck.
  int64_t work() const { return work_; }

 private:
  // The downloads that a group waits for.
  struct Waiting {
    int32_t count = 0;
    uint32_t mix = 0;  // of the numbers of the downloads, by exclusive or: the number itself where
                       // there is but one
    Span load;
  };

  OutstandingDownloads(const DependencyGroups& groups, std::vector<Span> times);

  // Sets loads and mixes.
  absl::Status AddUpLoads(StopCheck stop);
  // The group waits for one less.
  void Release(int32_t group, size_t download);
  // Over the group and what depends on it.
  Span LeastLoadFrom(int32_t group) const {
    return passed_[Index(group)] != 0 ? impending_[Index(group)] : waiting_[Index(group)].load;
  }
  Span LeastLoadBehind(int32_t group) const;
  // Shows a group that waits for one less in the impending loads of those that it depends on.
  void ShowRelease(int32_t group);
  // Notes a group whose impending load may no longer hold, where it has one.
  void Suspect(int32_t group);
  // Loads of the groups noted, and of those that they change, from the last group to the first.
  void UpdateImpendingLoads();

  const DependencyGroups* groups_;
  std::vector<Span> times_;
  std::vector<Span> freed_;
  std::vector<Waiting> waiting_;  // by group
  // By group: 1 if M+ looks past it, as it computes nothing or waits for one download alone; 0 too
  // where it waits for none.
  std::vector<uint8_t> passed_;
  std::vector<Span>
      impending_;  // by group that is passed: the least load behind it of a group that is not
  std::vector<uint32_t> visited_;  // by group: the last visit
  uint32_t visit_ = 0;
  std::vector<int32_t> released_;
  std::vector<uint64_t> suspects_;  // a bit a group
  size_t suspect_words_ = 0;        // no bit in words from here on
  int64_t work_ = 0;
};

// M+ of each download where a transfer takes one unit and nothing else takes any (TIC's general
// time oracle, Eq. 5); INT32_MAX where infinite. Cost: linear in the groups.
std::vector<int32_t> ImpendingTransferCounts(const DependencyGroups& groups);

}  // namespace stepcast
