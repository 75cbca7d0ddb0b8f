#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/importing/common/recording_import.h"
#include "core/importing/pytorch/pipeline_ranks.h"

namespace stepcast {

namespace {

absl::Status RankFault(const PipelineRank& rank, const std::string& what) {
  return ImportFault(rank.path, absl::StrCat("rank ", rank.rank, " ", what,
                                             ": give the recordings of all ranks of one replica, "
                                             "and no others"));
}

// The first and the last send one way alone, all others both ways.
absl::Status CheckPlaces(const std::vector<PipelineRank>& ranks) {
  const int64_t count = ranks[0].micro_batches();
  for (size_t i = 0; i < ranks.size(); ++i) {
    const PipelineRank& rank = ranks[i];
    const bool is_last = i + 1 == ranks.size();
    if ((i == 0) != (rank.input_bytes == 0))
      return RankFault(rank, i == 0 ? "sends gradients back, with no rank before it"
                                    : absl::StrCat("sends no gradients back, with rank ",
                                                   ranks[i - 1].rank, " before it"));
    if (is_last != (rank.activation_bytes == 0))
      return RankFault(rank, is_last ? "sends activations on, with no rank behind it"
                                     : absl::StrCat("sends no activations on, with rank ",
                                                    ranks[i + 1].rank, " behind it"));
    if (rank.micro_batches() != count)
      return RankFault(
          rank, absl::StrCat("has ", rank.micro_batches(), " micro-batches a step, and rank ",
                             ranks[0].rank, " ", count));
  }
  return absl::OkStatus();
}

// A rank receives what its neighbours send it.
absl::Status CheckTransfers(const std::vector<PipelineRank>& ranks) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const PipelineRank& rank = ranks[i];
    std::map<int64_t, int64_t> sent;
    if (i > 0) sent[ranks[i - 1].activation_bytes] += rank.micro_batches();
    if (i + 1 < ranks.size()) sent[ranks[i + 1].input_bytes] += rank.micro_batches();
    if (sent != rank.received)
      return RankFault(rank, absl::StrCat("receives ", TensorsOf(rank.received),
                                          " a step, and its neighbours send it ", TensorsOf(sent)));
    if (i > 0 && rank.input_bytes != ranks[i - 1].activation_bytes)
      return RankFault(
          rank, absl::StrCat("sends gradients of ", rank.input_bytes, " bytes back, and rank ",
                             ranks[i - 1].rank, " activations of ", ranks[i - 1].activation_bytes));
  }
  return absl::OkStatus();
}

// Ranks of replicas lie in a grid that is the job.
absl::Status CheckNumbers(const std::vector<PipelineRank>& ranks,
                          std::vector<std::string>& doubts) {
  const auto count = static_cast<int64_t>(ranks.size());
  const PipelineRank& first = ranks.front();
  const int64_t world = first.world_size;
  for (const PipelineRank& rank : ranks) {
    if (rank.world_size != world)
      return RankFault(rank, absl::StrCat("is of a job of ", rank.world_size, " ranks, and rank ",
                                          first.rank, " of one of ", world));
    if (rank.stages > 0 && rank.stages != count)
      return RankFault(rank, absl::StrCat("is of a pipeline's process group of ", rank.stages,
                                          " ranks, and ", count, " are given"));
  }
  if (count == 1) return absl::OkStatus();
  const int64_t apart = ranks[1].rank - first.rank;
  for (size_t i = 2; i < ranks.size(); ++i)
    if (ranks[i].rank - ranks[i - 1].rank != apart)
      return RankFault(ranks[i], absl::StrCat("is ", ranks[i].rank - ranks[i - 1].rank,
                                              " after rank ", ranks[i - 1].rank, ", and that is ",
                                              apart, " after rank ", ranks[i - 2].rank));
  const bool makes_world = apart <= world / count && world % (apart * count) == 0 &&
                           first.rank % (apart * count) < apart && ranks.back().rank < world;
  if (world > 0 && !makes_world)
    return RankFault(ranks[1],
                     absl::StrCat("cannot follow rank ", first.rank, ": pipelines of ", count,
                                  " ranks that are ", apart, " apart, one of them from rank ",
                                  first.rank, " on, make up no job of ", world, " ranks"));
  // Others between them would be as far apart, and there is no room for as many replicas.
  const bool is_sure = apart == 1 || first.stages > 0 || (world > 0 && apart * count == world);
  if (!is_sure)
    doubts.push_back(
        absl::StrCat("Not known: whether ranks are missing between those given, which are ", apart,
                     " apart: the traces name no process group of the pipeline",
                     world > 0 ? "." : ", and do not say how many ranks the job had."));
  return absl::OkStatus();
}

}  // namespace

std::string TensorsOf(const std::map<int64_t, int64_t>& tensors) {
  if (tensors.empty()) return "nothing";
  return absl::StrJoin(tensors, ", ", [](std::string* out, const auto& tensor) {
    absl::StrAppend(out, tensor.second, " of ", tensor.first, " bytes");
  });
}

absl::Status CheckReplica(const std::vector<PipelineRank>& ranks,
                          std::vector<std::string>& doubts) {
  if (absl::Status status = CheckPlaces(ranks); !status.ok()) return status;
  if (absl::Status status = CheckTransfers(ranks); !status.ok()) return status;
  return CheckNumbers(ranks, doubts);
}

}  // namespace stepcast
