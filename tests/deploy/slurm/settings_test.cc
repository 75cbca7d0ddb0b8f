#include "deploy/slurm/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

#include "stepcast/profile_encoding.h"

namespace stepcast::slurm::settings_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::HasSubstr;

absl::StatusOr<Settings> Parse(const std::string& text) {
  return ParseSettings(text, client::ReadFile);
}

std::string FaultOf(const std::string& text) {
  const auto settings = Parse(text);
  EXPECT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(settings.status().message());
}

std::string FileWith(const std::string& name, const std::string& content) {
  std::string path = (std::filesystem::path(testing::TempDir()) / name).string();
  std::ofstream(path) << content;
  return path;
}

TEST(SettingsTest, NothingIsAdviceFromThisMachineWithinTwentyMilliseconds) {
  const auto settings = Parse("# nothing\n");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->client.server, "127.0.0.1:50051");
  EXPECT_EQ(settings->mode, Mode::kAdvise);
  EXPECT_EQ(settings->adviser.wait, nanoseconds(milliseconds(20)));
  EXPECT_EQ(settings->node_rule, NodeRule::kAuto);
  EXPECT_FALSE(settings->raise_min);
}

TEST(SettingsTest, EverySettingIsTaken) {
  const std::string token = FileWith("token", "a-token\n");
  const std::string pem = FileWith("pem", "PEM");
  const auto settings = Parse(absl::StrCat(
      "server: predictor:1\nmode: set\nraise-min: true\nwait: 5ms\ncall-timeout: 3s\nkeep: 1m\n"
      "workers-per-node: 4\nintra-bandwidth: 300e9\nobjective: efficiency=0.8\nworker-hour: "
      "2.5\nnode-hour: 20\ntls: true\n"
      "token-file: ",
      token, "\ntls-ca: ", pem, "\ntls-cert: ", pem, "\ntls-key: ", pem, "\n"));
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->client.server, "predictor:1");
  EXPECT_EQ(settings->mode, Mode::kSet);
  EXPECT_TRUE(settings->raise_min);
  EXPECT_EQ(settings->adviser.wait, nanoseconds(milliseconds(5)));
  EXPECT_EQ(settings->adviser.call_timeout, nanoseconds(seconds(3)));
  EXPECT_EQ(settings->adviser.keep, nanoseconds(seconds(60)));
  EXPECT_EQ(settings->node_rule, NodeRule::kFixed);
  EXPECT_EQ(settings->workers_per_node, 4);
  EXPECT_EQ(settings->intra_node_bandwidth_bytes_per_second, 300e9);
  EXPECT_EQ(settings->objective, "efficiency=0.8");
  EXPECT_EQ(settings->prices.worker_hour(), 2.5);
  EXPECT_EQ(settings->prices.node_hour(), 20);
  EXPECT_TRUE(settings->client.credentials.use_tls);
  EXPECT_EQ(settings->client.credentials.token, "a-token");
  EXPECT_EQ(settings->client.credentials.root_certificates, "PEM");
  EXPECT_EQ(settings->client.credentials.certificate, "PEM");
  EXPECT_EQ(settings->client.credentials.private_key, "PEM");
  EXPECT_EQ(Parse("workers-per-node: gpus")->node_rule, NodeRule::kGpus);
  EXPECT_EQ(Parse("workers-per-node: tasks")->node_rule, NodeRule::kTasks);
}

TEST(SettingsTest, WhatIsWrongIsNamedWithItsValue) {
  EXPECT_EQ(FaultOf("mode: enforce"), "mode: \"enforce\" is not advise or set");
  EXPECT_EQ(FaultOf("wait: 2s"), "wait: \"2s\" is not a time from 0 to 1s");
  EXPECT_EQ(FaultOf("wait: -1ms"), "wait: \"-1ms\" is not a time from 0 to 1s");
  EXPECT_THAT(FaultOf("call-timeout: 1"), HasSubstr("call-timeout: \"1\" is not a time"));
  EXPECT_EQ(FaultOf("server: ''"), "server: \"\" is not a text");
  EXPECT_EQ(FaultOf("tls: yes"), "tls: \"yes\" is not true or false");
  EXPECT_THAT(FaultOf("workers-per-node: 0"), HasSubstr("\"0\" is not auto, gpus, tasks or"));
  EXPECT_THAT(FaultOf("objective: deadline=6h"), HasSubstr("objective: \"deadline=6h\" is not"));
  EXPECT_THAT(FaultOf("worker-hour: -1"), HasSubstr("worker-hour: \"-1\" is not an amount"));
  EXPECT_THAT(FaultOf("node-hour: nan"), HasSubstr("node-hour: \"nan\" is not an amount"));
  EXPECT_EQ(FaultOf("\ncolor: red"), "line 2: there is no setting \"color\", or it is given twice");
  EXPECT_THAT(FaultOf("mode: set\nmode: set"), HasSubstr("line 2: there is no setting \"mode\""));
  EXPECT_EQ(FaultOf("mode: [set]"), "mode: must have one plain value");
  EXPECT_EQ(FaultOf("- mode"), "must be a map of settings");
  EXPECT_EQ(FaultOf("mode: 'set"), "line 1: not YAML");
  EXPECT_THAT(FaultOf("token-file: /nowhere/at/all"), HasSubstr("token-file: "));
  EXPECT_THAT(FaultOf(absl::StrCat("tls-cert: ", FileWith("pem", "PEM"))),
              HasSubstr("one is given without the other"));
  EXPECT_THAT(FaultOf("mode: \"\\e[2J\""), HasSubstr("mode: \"?[2J\""));
  EXPECT_THAT(FaultOf(std::string(70'000, '#')), HasSubstr("70000 bytes"));
}

TEST(SettingsTest, ATokensFileIsNeverRepeated) {
  const std::string path = FileWith("two_tokens", "secret-one secret-two");
  const std::string fault = FaultOf(absl::StrCat("token-file: ", path));
  EXPECT_THAT(fault, HasSubstr("two_tokens\" is not a file with one token in it"));
  EXPECT_THAT(fault, testing::Not(HasSubstr("secret")));
}

TEST(SettingsTest, AFileIsNamedWhereItIsMissingOrWrong) {
  EXPECT_THAT(std::string(ReadSettings("/nowhere/stepcast.yaml").status().message()),
              HasSubstr("/nowhere/stepcast.yaml"));
  const std::string path = FileWith("wrong.yaml", "mode: no");
  EXPECT_EQ(ReadSettings(path).status().message(),
            absl::StrCat(path, ": mode: \"no\" is not advise or set"));
}

TEST(SettingsTest, TheFileThatIsInstalledIsSoundAndSaysTheDefaults) {
  const std::string path = STEPCAST_SOURCE_DIR "/deploy/slurm/stepcast.yaml";
  const auto installed = ReadSettings(path);
  ASSERT_TRUE(installed.ok()) << installed.status();
  // What is proposed in it, too, but for the files.
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    const bool proposes = line.substr(0, 2) == "# " && colon != std::string::npos &&
                          line.find(' ', 2) == colon + 1 && line.find('/') == std::string::npos;
    if (proposes && line.find(' ', colon + 2) == std::string::npos)
      absl::StrAppend(&text, line.substr(2), "\n");
  }
  EXPECT_THAT(text, HasSubstr("wait: 20ms\n"));
  const auto proposed = Parse(text);
  ASSERT_TRUE(proposed.ok()) << proposed.status() << text;
  const Settings defaults;
  EXPECT_EQ(proposed->adviser.wait, defaults.adviser.wait);
  EXPECT_EQ(proposed->adviser.call_timeout, defaults.adviser.call_timeout);
  EXPECT_EQ(proposed->adviser.keep, defaults.adviser.keep);
  EXPECT_EQ(proposed->objective, defaults.objective);
  EXPECT_EQ(proposed->node_rule, defaults.node_rule);
  EXPECT_EQ(proposed->raise_min, defaults.raise_min);
  EXPECT_EQ(installed->client.server, defaults.client.server);
}

}  // namespace
}  // namespace stepcast::slurm::settings_test
