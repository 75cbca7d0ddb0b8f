// The graph that orders of transfers are computed from: one worker's operations, their times, and
// their dependencies.
//
// Source: Hashemi, Abdu Jyothi, Campbell: "TicTac: Accelerating distributed deep learning with
// communication scheduling", SysML 2019, section 3.1. Its "recv ops" are downloads here.
// Threads: immutable after construction; share it freely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/time.h"

namespace stepcast {

enum class OperationKind : uint8_t {
  kDownload,
  kComputation,  // of the worker: the parsing of a tensor it received is one too
  kOther,        // uploads and what servers compute: they only pass dependencies on
};

class TransferGraph {
 public:
  struct Operation {
    OperationKind kind = OperationKind::kOther;
    Span time;  // a download's alone on its link
  };
  // `after` waits for `before`; both are indices of operations.
  struct Dependency {
    int32_t before = 0;
    int32_t after = 0;
  };

  // REQUIRES: indices in range; no cycle; no negative time; all times together are a valid Span.
  // Cost: linear.
  TransferGraph(std::vector<Operation> operations, const std::vector<Dependency>& dependencies);

  int32_t size() const { return static_cast<int32_t>(operations_.size()); }
  const Operation& operation(int32_t op) const { return operations_[static_cast<size_t>(op)]; }
  // Ascending, which is graph order.
  const std::vector<int32_t>& downloads() const { return downloads_; }
  std::span<const int32_t> dependents(int32_t op) const;
  // Every operation after all that it waits for.
  const std::vector<int32_t>& topological() const { return topological_; }

 private:
  void SortTopologically();

  std::vector<Operation> operations_;
  std::vector<int32_t> downloads_;
  std::vector<int32_t> dependents_;
  std::vector<size_t> first_dependent_;  // size() + 1 entries
  std::vector<int32_t> topological_;
};

// The topological cut of a graph: the place where it is as narrow as one operation.
//
// An operation that waits, directly or through others, for all before it, and that all after it
// wait for; as the loss of a training step.
struct GraphCut {
  int32_t operation = -1;         // -1: there is none
  std::vector<int32_t> up_to_it;  // all that it waits for, and itself; ascending
  friend bool operator==(const GraphCut&, const GraphCut&) = default;
};

// The first computation that is one and that every download is before. Cost: linear. Threads: pure
// function.
GraphCut FirstCutBehindDownloads(const TransferGraph& graph);

}  // namespace stepcast
