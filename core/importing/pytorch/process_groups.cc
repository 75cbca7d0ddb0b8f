#include <algorithm>
#include <initializer_list>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "core/importing/common/recording_import.h"
#include "core/importing/pytorch/pytorch_reader.h"

namespace stepcast {

namespace {

// The lower-case words of a group's description.
std::vector<std::string> WordsOf(const TraceGroup& group) {
  return absl::StrSplit(absl::AsciiStrToLower(group.description), absl::ByAnyChar("_- ."));
}

bool HasAnyWord(const std::vector<std::string>& words, std::initializer_list<const char*> others) {
  return std::any_of(words.begin(), words.end(), [&others](const std::string& word) {
    return std::find(others.begin(), others.end(), word) != others.end();
  });
}

}  // namespace

bool IsInsideReplica(const TraceGroup& group) {
  const std::string text = absl::AsciiStrToLower(group.description);
  if (absl::StrContains(text, "data_parallel")) return false;
  for (const char* const part : {"tensor", "pipeline", "context", "expert", "embedding"}) {
    if (absl::StrContains(text, part)) return true;
  }
  const std::vector<std::string> words = WordsOf(group);
  return !HasAnyWord(words, {"dp", "ddp", "data", "replicate", "fsdp", "shard"}) &&
         HasAnyWord(words, {"tp", "pp", "cp", "ep", "sp", "etp", "model", "mp"});
}

std::string DimensionOf(const TraceGroup& group) {
  const std::vector<std::string> words = WordsOf(group);
  std::vector<std::string> dimensions;
  if (HasAnyWord(words, {"tensor", "tp", "etp"})) dimensions.emplace_back("tensor");
  if (HasAnyWord(words, {"pipeline", "pp"})) dimensions.emplace_back("pipeline");
  if (HasAnyWord(words, {"context", "cp", "sp", "sequence"})) dimensions.emplace_back("context");
  if (HasAnyWord(words, {"expert", "ep"})) dimensions.emplace_back("expert");
  if (dimensions.empty() && group.description.empty()) return group.name;
  return dimensions.size() == 1 ? dimensions.front() : "";
}

ReplicaShape ShapeOfReplica(const PyTorchTrace& trace, int32_t gradients) {
  std::map<std::string, int64_t> dimensions;
  const TraceGroup none;
  const TraceGroup& reduced = gradients >= 0 ? trace.groups[static_cast<size_t>(gradients)] : none;
  int64_t job = trace.world_size;
  for (const TraceGroup& group : trace.groups) {
    if (group.description == "default_pg") job = std::max(job, group.size);
    const bool is_inside =
        IsInsideReplica(group) || (group.description.empty() && gradients >= 0 && group != reduced);
    if (!is_inside || group.size <= 1) continue;
    if (const std::string dimension = DimensionOf(group); !dimension.empty())
      dimensions[dimension] = std::max(dimensions[dimension], group.size);
  }
  if (dimensions.empty()) return {};
  // Gradients that contexts reduce, too, are those of fewer replicas.
  const bool has_contexts = HasAnyWord(WordsOf(reduced), {"cp", "context"});
  const int64_t contexts =
      has_contexts && dimensions.contains("context") ? dimensions["context"] : 1;
  int64_t devices = 1;
  for (const auto& [name, size] : dimensions)
    devices = std::min<int64_t>(devices * std::min<int64_t>(size, kMaxDevicesPerWorker),
                                kMaxDevicesPerWorker);
  if (reduced.size > 0 && job > reduced.size && job * contexts % reduced.size == 0)
    devices = std::min<int64_t>(job * contexts / reduced.size, kMaxDevicesPerWorker);
  return {.devices = devices, .reducing_contexts = contexts};
}

}  // namespace stepcast
