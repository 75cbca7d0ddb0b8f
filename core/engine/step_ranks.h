// The rank of every transfer in every worker's current step.
//
// Fixed and recorded ranks come with the job; a shuffled order is drawn anew for each step and
// worker. Threads: none. Memory: of shuffled orders, 4 bytes an operation and worker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"

namespace stepcast {

class StepRanks {
 public:
  // True if any worker's transfers have ranks.
  static bool Needed(const JobGraph& job) {
    return std::any_of(job.rankings.begin(), job.rankings.end(), [](const auto& ranking) {
      return ranking->rule != Ranking::Rule::kArrival;
    });
  }

  // The job must outlive it.
  StepRanks(const JobGraph& job, const RunOptions& options) : job_(job) {
    if (!Needed(job)) return;
    rows_.assign(Index(job.workers()), nullptr);
    for (int32_t worker = 0; worker < job.workers(); ++worker) {
      const Ranking& ranking = RankingOf(worker);
      if (ranking.rule == Ranking::Rule::kFixed) rows_[Index(worker)] = ranking.ranks.data();
      if (ranking.rule == Ranking::Rule::kShuffled) AddShuffle(options, worker);
    }
    for (Shuffle& shuffle : shuffles_) rows_[Index(shuffle.worker)] = shuffle.ranks.data();
  }

  // `recorded`: the recorded step that the worker's new step repeats.
  void BeginStep(int32_t worker, int32_t recorded) {
    if (rows_.empty()) return;
    const Ranking& ranking = RankingOf(worker);
    if (ranking.rule == Ranking::Rule::kRecorded) {
      const size_t size = Index(job_.program(worker).size());
      rows_[Index(worker)] = ranking.ranks.data() + Index(recorded) * size;
    } else if (ranking.rule == Ranking::Rule::kShuffled) {
      Draw(shuffles_[Index(shuffle_of_[Index(worker)])]);
    }
  }

  // True if a step's ranks are drawn anew each time.
  bool AreShuffled(int32_t worker) const {
    return !rows_.empty() && RankingOf(worker).rule == Ranking::Rule::kShuffled;
  }
  // By OpIndex, until the worker's next step begins; null without ranks.
  const int32_t* RanksOf(int32_t worker) const {
    return rows_.empty() ? nullptr : rows_[Index(worker)];
  }
  // kUnranked without ranks.
  int32_t RankOf(int32_t worker, OpIndex op) const {
    return rows_.empty() || rows_[Index(worker)] == nullptr ? Ranking::kUnranked
                                                            : rows_[Index(worker)][op];
  }

 private:
  static constexpr uint64_t kPermutationStream = 2;

  struct Shuffle {
    int32_t worker;
    Random random;
    std::vector<OpIndex> transfers;
    std::vector<int32_t> ranks;  // by OpIndex
  };

  const Ranking& RankingOf(int32_t worker) const {
    return *job_.rankings[Index(job_.program_of_worker[Index(worker)])];
  }

  void AddShuffle(const RunOptions& options, int32_t worker) {
    const Program& program = job_.program(worker);
    Shuffle shuffle{.worker = worker,
                    .random = Random({options.seed, options.replication,
                                      static_cast<uint64_t>(worker), kPermutationStream}),
                    .transfers = {},
                    .ranks = std::vector<int32_t>(Index(program.size()), 0)};
    for (OpIndex op = 0; op < program.size(); ++op) {
      if (program.IsTransfer(op)) shuffle.transfers.push_back(op);
    }
    shuffle_of_.resize(Index(job_.workers()), -1);
    shuffle_of_[Index(worker)] = static_cast<int32_t>(shuffles_.size());
    shuffles_.push_back(std::move(shuffle));
  }

  // Fisher-Yates over the transfers.
  static void Draw(Shuffle& shuffle) {
    int32_t* const ranks = shuffle.ranks.data();
    const std::vector<OpIndex>& transfers = shuffle.transfers;
    for (size_t i = 0; i < transfers.size(); ++i) {
      const auto j = static_cast<size_t>(shuffle.random.Below(i + 1));
      ranks[transfers[i]] = ranks[transfers[j]];
      ranks[transfers[j]] = static_cast<int32_t>(i);
    }
  }

  const JobGraph& job_;
  std::vector<const int32_t*> rows_;  // by worker: of its step at hand; null: none
  std::vector<Shuffle> shuffles_;
  std::vector<int32_t> shuffle_of_;  // by worker
};

}  // namespace stepcast
