// The rank of every transfer in every worker's current step.
//
// Fixed ranks (reverse, TIC, TAC, explicit) come with the run; RECORDED ranks a step's transfers by
// their recorded end (equal ends, equal ranks); RANDOM draws a new permutation for each step and
// worker. Threads: none. Memory: 4 bytes an operation and recorded step (RECORDED) or worker
// (RANDOM).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/engine/simulation.h"
#include "core/engine/step_graph.h"

namespace stepcast {

class StepRanks {
 public:
  static bool Needed(TransferOrder order) { return order != TransferOrder::kGraph; }

  StepRanks(const StepGraph& graph, const RunOptions& options, int32_t workers)
      : order_(options.order), size_(static_cast<size_t>(graph.size())) {
    if (order_ == TransferOrder::kRecorded) {
      RankByRecordedEnd(graph);
    } else if (order_ == TransferOrder::kRandom) {
      PrepareShuffles(graph, options, workers);
    } else {
      ranks_ = options.ranks;
    }
    row_.assign(static_cast<size_t>(workers), 0);
  }
  // `recorded`: the recorded step that the worker's new step was sampled from.
  void BeginStep(int32_t worker, int32_t recorded) {
    if (order_ == TransferOrder::kRecorded) {
      row_[static_cast<size_t>(worker)] = static_cast<size_t>(recorded);
    } else if (order_ == TransferOrder::kRandom) {
      Shuffle(worker);
    }
  }

  // 0 without ranks.
  int32_t RankOf(int32_t worker, OpIndex op) const {
    const auto index = static_cast<size_t>(op);
    switch (order_) {
      case TransferOrder::kGraph:
        return 0;
      case TransferOrder::kRecorded:
        return ranks_[row_[static_cast<size_t>(worker)] * size_ + index];
      case TransferOrder::kRandom:
        return ranks_[static_cast<size_t>(worker) * size_ + index];
      default:
        return ranks_[index];
    }
  }

 private:
  static constexpr uint64_t kPermutationStream = 2;

  void PrepareShuffles(const StepGraph& graph, const RunOptions& options, int32_t workers) {
    for (OpIndex op = 0; op < graph.size(); ++op) {
      if (graph.IsTransfer(op)) transfers_.push_back(op);
    }
    ranks_.assign(size_ * static_cast<size_t>(workers), 0);
    for (int32_t worker = 0; worker < workers; ++worker) {
      random_.push_back(Random(
          {options.seed, options.replication, static_cast<uint64_t>(worker), kPermutationStream}));
    }
  }

  void RankByRecordedEnd(const StepGraph& graph) {
    ranks_.assign(size_ * static_cast<size_t>(graph.step_count()), 0);
    std::vector<std::pair<int64_t, OpIndex>> ends;
    for (int32_t step = 0; step < graph.step_count(); ++step) {
      ends.clear();
      for (OpIndex op = 0; op < graph.size(); ++op) {
        if (graph.IsTransfer(op)) ends.emplace_back(graph.recorded_end_ns(step, op), op);
      }
      std::sort(ends.begin(), ends.end());
      int32_t rank = -1;
      int64_t last_end = -1;
      for (const auto& [end, op] : ends) {
        if (end != last_end) ++rank;
        last_end = end;
        ranks_[static_cast<size_t>(step) * size_ + static_cast<size_t>(op)] = rank;
      }
    }
  }

  // Fisher-Yates over the transfers.
  void Shuffle(int32_t worker) {
    Random& random = random_[static_cast<size_t>(worker)];
    int32_t* ranks = &ranks_[static_cast<size_t>(worker) * size_];
    for (size_t i = 0; i < transfers_.size(); ++i) {
      const auto j = static_cast<size_t>(random.Below(i + 1));
      ranks[transfers_[i]] = ranks[transfers_[j]];
      ranks[transfers_[j]] = static_cast<int32_t>(i);
    }
  }

  const TransferOrder order_;
  const size_t size_;
  std::vector<int32_t> ranks_;      // by operation; by step or worker and operation
  std::vector<size_t> row_;         // of RECORDED: by worker, the recorded step
  std::vector<OpIndex> transfers_;  // of RANDOM
  std::vector<Random> random_;      // of RANDOM: by worker
};

}  // namespace stepcast
