// A job that is submitted to Slurm, and the settings of its plugin: lines, of which the first is
// the comment, the second the environment's profile, the third the resources of a node, the fourth
// least and most nodes, tasks of a node and the workers that the answer chooses; the rest are
// settings.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "deploy/slurm/settings.h"
#include "deploy/slurm/submission.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/text_mutator.h"

namespace stepcast::fuzz {

namespace {

using client::Advice;
using client::AdviceQuestion;

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::array<uint32_t, 4> NumbersOf(std::string_view line) {
  std::array<uint32_t, 4> numbers{};
  for (uint32_t& number : numbers) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    line.remove_prefix(std::min<size_t>(static_cast<size_t>(end - line.data()) + 1, line.size()));
  }
  return numbers;
}

void DemandLine(const std::string& line, size_t max_bytes) {
  const bool is_plain =
      std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
  Demand(is_plain && line.size() <= max_bytes, "a line is printable and bounded:", line);
}

Advice AnswerTo(const AdviceQuestion& question, uint32_t workers) {
  Demand(client::CheckAdviceQuestion(question).ok(), "a question that is asked is sound");
  Demand(client::ParseAdviceText("profile=" + question.profile).ok(), "its profile has a name");
  Advice advice;
  // Inside the range, as the adviser has made sure.
  const auto spread = static_cast<uint32_t>(question.max_workers - question.min_workers + 1);
  advice.chosen.workers = question.min_workers + static_cast<int32_t>(workers % spread);
  advice.least_workers = question.min_workers;
  advice.summary = "so many";
  return advice;
}

bool TrySettings(const std::string& text, slurm::Settings& settings) {
  // Every file but one is there, and has its own name in it.
  const auto read = [](const std::string& path) -> absl::StatusOr<std::string> {
    if (path.empty()) return absl::NotFoundError("there is no file without a name");
    return path;
  };
  absl::StatusOr<slurm::Settings> parsed = slurm::ParseSettings(text, read);
  if (!parsed.ok()) {
    DemandLine(std::string(parsed.status().message()), 512);
    return false;
  }
  settings = *std::move(parsed);
  return true;
}

class SubmissionTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    return {
        "stepcast:profile=resnet50\n\n\n2,16,0,8\nmode: set\n",
        "a run stepcast:profile=a-1;objective=efficiency=0.8;examples=1000000 x\nb\ngres:gpu:4\n"
        "1,300,2,4\nmode: advise\nworkers-per-node: auto\nwait: 20ms\n",
        "\nresnet50\ngres:gpu:a100:2,gres:nvme:1\n1,8,1,1\nmode: set\nraise-min: true\n"
        "objective: cost\nnode-hour: 20\n",
        "stepcast:profile=a;objective=deadline=1h30m;examples=7;workers-per-node=2;worker-hour=1\n"
        "\n\n4,64,0,3\nserver: predictor:1\nkeep: 5m\ncall-timeout: 3s\nworkers-per-node: 4\n"
        "tls-ca: /ca\ntls-cert: /cert\ntls-key: /key\ntoken-file: /token\n",
    };
  }

  bool Run(std::string_view input) override {
    slurm::Submission job{.comment = TakeLine(input)};
    job.profile = TakeLine(input);
    job.tres_per_node = TakeLine(input);
    const std::array<uint32_t, 4> numbers = NumbersOf(TakeLine(input));
    job.min_nodes = numbers[0];
    job.max_nodes = numbers[1];
    if (numbers[2] > 0) job.tasks_per_node = numbers[2];
    slurm::Settings settings;
    if (!TrySettings(std::string(input), settings)) return false;
    int asked = 0;
    const slurm::Decision decision =
        slurm::Decide(job, settings, [&](const AdviceQuestion& question) {
          ++asked;
          return AnswerTo(question, numbers[3]);
        });
    Demand(asked <= 1, "a job is asked about once");
    DemandLine(decision.admin_comment, 700);
    DemandLine(decision.user_line, 300);
    DemandLine(decision.log_line, 300);
    if (decision.max_nodes.has_value()) {
      Demand(settings.mode == slurm::Mode::kSet && !decision.admin_comment.empty() &&
                 !decision.user_line.empty(),
             "nothing is set without a word");
      Demand(*decision.min_nodes >= *job.min_nodes && *decision.min_nodes <= *decision.max_nodes &&
                 *decision.max_nodes <= *job.max_nodes,
             "what is set is inside the range");
    }
    return asked == 1;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateText(std::move(input), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<SubmissionTarget>(); }

}  // namespace stepcast::fuzz
