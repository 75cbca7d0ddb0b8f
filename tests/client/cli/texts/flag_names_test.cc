#include "client/cli/texts/flag_names.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"

#include "tests/client/support/temporary_directory.h"

namespace stepcast::client::flag_names_test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The paths of all fields that are set, those above them included.
void AddPaths(const Message& message, const std::string& above, std::vector<std::string>& paths) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(above, above.empty() ? "" : ".", field->name());
    paths.push_back(path);
    if (!field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      AddPaths(message.GetReflection()->GetMessage(message, field), path, paths);
  }
}

// A text that the option takes.
std::string SampleFor(const CLI::Option& option, const TemporaryDirectory& directory) {
  const std::string& type = option.get_type_name();
  const std::string& name = option.get_name();
  if (name == "--cluster") return "dgx-a100";
  if (name == "--currency") return "USD";
  if (name == "--pipeline") return "stages=2";
  if (name == "--measured") {
    return directory.Write("measured.csv",
                           "kind,workers,size_bytes,seconds\nALL_REDUCE,4,1024,0.001\n");
  }
  if (name == "--priorities") return directory.Write("priorities", "recv\t3\n");
  if (const size_t bar = type.find('|'); bar != std::string::npos) return type.substr(0, bar);
  if (type == "RATE") return "1GB/s";
  if (type == "BYTES") return "1MiB";
  if (type.substr(0, 4) == "TIME") return "1ms";
  return "1";
}

// The flag of the deepest field that it set is the one that was typed; `untouched` is the message
// without any flag.
void ExpectNamed(const std::string& flag, const Message& message, const Message& untouched,
                 const std::string& part) {
  std::vector<std::string> paths;
  std::vector<std::string> before;
  AddPaths(message, part, paths);
  AddPaths(untouched, part, before);
  std::erase_if(paths, [&](const std::string& path) {
    // Beside what asks for a communication it says that no other kind is asked for.
    return path == absl::StrCat(part, ".recorded_kind_only") ||
           std::find(before.begin(), before.end(), path) != before.end();
  });
  ASSERT_FALSE(paths.empty()) << flag << " sets nothing";
  EXPECT_EQ(FieldText(paths.back(), {flag}).substr(0, flag.size()), flag) << paths.back();
  EXPECT_EQ(FieldText(paths.back(), {}), paths.back());
}

TEST(FlagNamesTest, EveryFlagOfAScenarioIsKnownByTheFieldThatItSets) {
  const TemporaryDirectory directory;
  CLI::App all;
  ScenarioFlags().Declare(all, ScenarioFlags::Order::kChosenByUser,
                          ScenarioFlags::Offsets::kAllowed);
  int seen = 0;
  for (const CLI::Option* option : all.get_options()) {
    const std::string flag = option->get_name();
    if (flag == "--help") continue;
    CLI::App app;
    ScenarioFlags flags;
    flags.Declare(app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
    std::vector<std::string> words{flag};
    if (option->get_items_expected_min() > 0)
      words.insert(words.begin(), SampleFor(*option, directory));
    if (flag == "--scenario")
      words[0] = directory.Write("scenario.json", R"({"other_traffic_fraction": 0.5})");
    if (flag == "--contention")
      words[0] = directory.Write("contention.json", R"({"alpha2": 0.001})");
    if (flag == "--first-bucket") words = {words[0], words[1], "25MiB", "--bucket-cap"};
    if (flag.starts_with("--intra-")) words = {words[0], words[1], "4", "--workers-per-node"};
    ASSERT_NO_THROW(app.parse(words)) << flag;
    v1::Scenario scenario = flags.scenario();
    if (flag == "--first-bucket")
      scenario.mutable_all_reduce()->mutable_buckets()->clear_cap_bytes();
    if (flag.starts_with("--intra-")) scenario.mutable_all_reduce()->clear_workers_per_node();
    ExpectNamed(flag, scenario, ScenarioFlags().scenario(), "scenario");
    ++seen;
  }
  EXPECT_GT(seen, 35);
}

TEST(FlagNamesTest, EveryFlagOfASimulationIsKnownByTheFieldThatItSets) {
  const TemporaryDirectory directory;
  CLI::App all;
  SimulationFlags().Declare(all);
  for (const CLI::Option* option : all.get_options()) {
    const std::string flag = option->get_name();
    if (flag == "--help") continue;
    CLI::App app;
    SimulationFlags flags;
    flags.Declare(app);
    std::vector<std::string> words{flag};
    if (option->get_items_expected_min() > 0)
      words.insert(words.begin(), SampleFor(*option, directory));
    ASSERT_NO_THROW(app.parse(words)) << flag;
    ExpectNamed(flag, flags.options(), SimulationFlags().options(), "options");
  }
}

TEST(FlagNamesTest, EveryFlagOfARecommendationIsKnownByTheFieldThatItSets) {
  const TemporaryDirectory directory;
  RecommendFlags nothing;
  CLI::App all;
  nothing.Declare(all);
  for (const CLI::Option* option : all.get_options()) {
    const std::string flag = option->get_name();
    if (flag == "--help") continue;
    CLI::App app;
    RecommendFlags flags;
    flags.Declare(app);
    std::vector<std::string> words{SampleFor(*option, directory), flag};
    const bool of_current = flag == "--current-servers" || flag == "--rescale-time";
    if (of_current) words = {words[0], words[1], "1", "--current-workers"};
    if (flag == "--epochs") words = {words[0], words[1], "1", "--dataset"};
    if (flag == "--dataset") words = {words[0], words[1], "1", "--epochs"};
    // Read from the back: of failures two times are needed, and only the flag's own is looked at.
    if (option->get_group() == "Time and money" && option->get_type_name() == "TIME") {
      if (flag != "--checkpoint-time") words.insert(words.begin(), {"1s", "--checkpoint-time"});
      if (flag != "--worker-mtbf") words.insert(words.begin(), {"1h", "--worker-mtbf"});
    }
    ASSERT_NO_THROW(app.parse(words)) << flag;
    v1::RecommendWorkersRequest request = flags.request();
    if (of_current) request.mutable_current()->clear_workers();
    if (request.has_failures()) {
      if (flag != "--checkpoint-time") request.mutable_failures()->clear_checkpoint_time();
      if (flag != "--worker-mtbf") request.mutable_failures()->clear_worker_mean_time_between();
    }
    ExpectNamed(flag, request, nothing.request(), "");
  }
}

TEST(FlagNamesTest, AnEntryOfAListIsNumbered) {
  EXPECT_EQ(FieldText("worker_counts[2]", {"--workers"}), "--workers, number 3");
  EXPECT_EQ(FieldText("scenario.worker_groups[0].count", {"--worker-group"}),
            "--worker-group, number 1 (count)");
  EXPECT_EQ(FieldText("scenario.parameter_servers.transfer_priorities[pull/a 0]", {"--priorities"}),
            "--priorities, pull/a 0");
  EXPECT_EQ(FieldText("header.pytorch.batch_size", {"--batch-size"}), "--batch-size");
  EXPECT_EQ(FieldText("header.model_zoo.model", {"MODEL"}), "MODEL");
}

TEST(FlagNamesTest, WhatNoFlagHasSetKeepsItsPath) {
  EXPECT_EQ(FieldText("scenario.all_reduce.latency_seconds", {"--bandwidth"}),
            "scenario.all_reduce.latency_seconds");
  EXPECT_EQ(FieldText("jobs[0].scenario.all_reduce.latency_seconds", {"--latency"}),
            "jobs[0].scenario.all_reduce.latency_seconds");
  EXPECT_EQ(FieldText("scenario.workers_of_mine", {"--workers"}), "scenario.workers_of_mine");
}

TEST(FlagNamesTest, WhatIsMissingIsNamedByTheFlagToGive) {
  EXPECT_EQ(FlagToGive("constraints.examples"), "--examples");
  EXPECT_EQ(FlagToGive("prices"), "--worker-hour");
  EXPECT_EQ(FlagToGive("jobs[0].prices"), "jobs[0].prices");
  EXPECT_EQ(FlagToGive("header.layer_profile.tensor_parallel"), "--tensor-parallel");
}

TEST(FlagNamesTest, DescriptionsNameFlagsToo) {
  EXPECT_EQ(DescriptionText("9 workers do not fill nodes of 8 (all_reduce.workers_per_node)",
                            {"--workers-per-node"}),
            "9 workers do not fill nodes of 8 (--workers-per-node)");
  EXPECT_EQ(DescriptionText("given, and workers_per_rack is not, in \"workers_per_rack\"",
                            {"--workers-per-rack"}),
            "given, and --workers-per-rack is not, in \"workers_per_rack\"");
  EXPECT_EQ(DescriptionText("unset, but constraints.deadline needs it", {"--deadline"}),
            "unset, but --deadline needs it");
  EXPECT_EQ(
      DescriptionText("ask for servers (--servers N; in a request, parameter_servers.servers)",
                      {"--sync"}),
      "ask for servers (--servers N)");
  EXPECT_EQ(DescriptionText("12 is above the limit max_steps = 7", {"--steps"}),
            "12 is above the limit max_steps = 7");
}

TEST(FlagNamesTest, AnswersNameFlagsThatNobodyTyped) {
  EXPECT_EQ(WithFlags("not steady: ask for more steps_per_worker or warmup_steps"),
            "not steady: ask for more --steps or --warmup");
  EXPECT_EQ(WithFlags("of layer1.weight, 1.5 GB/s"), "of layer1.weight, 1.5 GB/s");
}

}  // namespace
}  // namespace stepcast::client::flag_names_test
