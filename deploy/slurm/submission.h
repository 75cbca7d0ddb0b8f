// The plugin's handling of a job that is submitted: which advice it asks for, and what becomes of
// it. Knows no Slurm, so that tests, fuzzers and sanitizers run it alone.
//
// Texts are of whoever submits, and bounded here. Threads: pure functions. Cost: linear in the
// comment and the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "deploy/slurm/settings.h"
#include "stepcast/advice.h"

namespace stepcast::slurm {

// The part of a job description that matters here. Unset: not given by the user.
struct Submission {
  std::string_view comment;
  std::string_view profile;  // of the environment's STEPCAST_PROFILE; a comment counts more
  std::optional<uint32_t> min_nodes;
  std::optional<uint32_t> max_nodes;
  std::optional<uint32_t> tasks_per_node;
  std::string_view tres_per_node;  // "gres:gpu:4"; --gres and --gpus-per-node
  bool has_fixed_size = false;     // by tasks, GPUs or nodes that the job names: no count to choose
};

// The changes to be made to the job, and the lines to be said of it.
struct Decision {
  std::optional<uint32_t> min_nodes;  // to be set
  std::optional<uint32_t> max_nodes;
  std::string admin_comment;  // to be added; empty: nothing. At most 700 printable characters
  std::string user_line;      // for whoever submits; empty: nothing. At most 300
  std::string log_line;       // for the administrator; empty: nothing
};

// The text of a comment for this plugin: what follows `stepcast:` at its begin or after a space, up
// to the next space. None where there is none.
std::optional<std::string_view> AdviceTextOf(std::string_view comment);

// The GPUs of a node, of a list such as "gres:gpu:4" or "gres/gpu:a100:2,gres/nvme:1". 0: none;
// none where a number is not understood.
std::optional<int32_t> GpusOf(std::string_view tres_per_node);

// The question of a job. None: the job has none, which is no fault: it names no profile, or has no
// range of nodes to choose from.
// Errors: INVALID_ARGUMENT, what is wrong with the comment.
absl::StatusOr<std::optional<client::AdviceQuestion>> QuestionOf(const Submission& job,
                                                                 const Settings& settings);

// Decides on a job; `ask` is asked at most once.
Decision Decide(
    const Submission& job, const Settings& settings,
    absl::FunctionRef<absl::StatusOr<client::Advice>(const client::AdviceQuestion&)> ask);

}  // namespace stepcast::slurm
