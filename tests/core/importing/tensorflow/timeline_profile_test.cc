#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/importing/tensorflow/tensorflow_profile.h"
#include "tests/core/importing/random_training.h"
#include "tests/core/importing/timeline_writer.h"

namespace stepcast::timeline_profile_test {
namespace {

using ::stepcast::testing::RandomTimeline;
using ::stepcast::testing::Told;
using ::stepcast::testing::WriteTimeline;
using ::testing::Contains;
using ::testing::HasSubstr;

TimelineOptions Options(std::map<std::string, int64_t> sizes) {
  return {
      .recording = {.model = "m", .batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}},
      .variable_bytes = std::move(sizes)};
}

absl::StatusOr<ImportedProfile> Import(const std::string& text,
                                       const TimelineOptions& options = Options({{"var0", 4000}}),
                                       const std::string& graph = "") {
  TextSource source(text);
  TextSource graph_source(graph);
  return ImportTimeline(source, graph.empty() ? nullptr : &graph_source, options, {}, NeverStop);
}

std::string Event(const std::string& rest) {
  return R"({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": ")" +
         rest + "]}";
}

// The operations that each waits for, by name, made apart from the importer: by the inputs of its
// event.
TEST(TimelineProfileTest, VariablesTravelAndAllElseIsAsItWas) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Timeline timeline = RandomTimeline(seed);
    TimelineOptions exact = Options({{"var0", 4000}});
    exact.variation.own = 0;
    const absl::StatusOr<ImportedProfile> imported = Import(WriteTimeline(timeline), exact);
    ASSERT_TRUE(imported.ok()) << imported.status() << " seed " << seed;
    std::map<std::string, std::vector<std::string>> expected;
    std::map<std::string, int64_t> lengths;
    for (const TimelineEvent& event : timeline.events) {
      const std::string name = event.node == "var0" ? "recv/var0" : event.node;
      std::vector<std::string>& waits = expected[name];
      lengths[name] = event.length_ns;
      for (std::string input : event.inputs) {
        input = input.substr(input.front() == '^' ? 1 : 0);
        input = input.substr(0, input.find(':'));
        if (event.node == "update/var0" && input == "var0") continue;
        waits.push_back(input == "var0" ? "recv/var0" : input);
      }
      std::sort(waits.begin(), waits.end());
      waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    }
    expected["send/var0"] = std::exchange(expected["update/var0"], {"send/var0"});
    std::map<std::string, std::vector<std::string>> found;
    const Profile& profile = imported->profile;
    for (size_t i = 0; i < profile.operations().size(); ++i) {
      const Operation& operation = profile.operations()[i];
      std::vector<std::string>& waits = found[operation.name];
      for (const int32_t before : operation.waiting_for)
        waits.push_back(profile.operations()[static_cast<size_t>(before)].name);
      std::sort(waits.begin(), waits.end());
      if (!IsTransfer(operation.resource)) {
        EXPECT_EQ(profile.steps()[0].end_ns[i] - profile.steps()[0].start_ns[i],
                  lengths[operation.name])
            << operation.name << " seed " << seed;
      }
    }
    EXPECT_EQ(found, expected) << "seed " << seed;
    // Times of transfers are made, whichever they are.
    EXPECT_FALSE(profile.knows_transfer_order());
  }
}

// A timeline has one step: that nothing shows how others would differ is said.
TEST(TimelineProfileTest, StepsVaryWhereThatIsAskedFor) {
  const ImportedProfile one = Import(WriteTimeline(RandomTimeline(1))).value();
  EXPECT_EQ(one.profile.steps().size(), 1u);
  EXPECT_THAT(one.notes.back(), ::testing::HasSubstr("one step"));
  TimelineOptions bad = Options({{"var0", 4000}});
  bad.variation = {.own = 0.6, .steps = 0};
  const absl::Status refused = Import(WriteTimeline(RandomTimeline(1)), bad).status();
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(refused).faults) fields.push_back(fault.field);
  EXPECT_THAT(fields, ::testing::ElementsAre("step_time_variation", "steps"));
}

TEST(TimelineProfileTest, AGraphSaysHowLargeVariablesAre) {
  // GraphDef: node { name: "var0" op: "VariableV2" attr { dtype: DT_FLOAT } attr { shape { 10 x 20
  // } } }.
  const std::string dtype =
      std::string("\x2a\x0b\x0a\x05") + "dtype" + std::string("\x12\x02\x30\x01", 4);
  const std::string shape = std::string("\x2a\x13\x0a\x05") + "shape" +
                            std::string("\x12\x0a\x3a\x08\x12\x02\x08\x0a\x12\x02\x08\x14", 12);
  const std::string node =
      std::string("\x0a\x04") + "var0" + std::string("\x12\x0a") + "VariableV2" + dtype + shape;
  const std::string graph = std::string("\x0a") + static_cast<char>(node.size()) + node;
  const absl::StatusOr<ImportedProfile> imported =
      Import(WriteTimeline(RandomTimeline(3)), Options({}), graph);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto& operations = imported->profile.operations();
  const auto found =
      std::find_if(operations.begin(), operations.end(),
                   [](const Operation& operation) { return operation.name == "recv/var0"; });
  ASSERT_NE(found, operations.end());
  EXPECT_EQ(found->size_bytes, 10 * 20 * 4);
}

TEST(TimelineProfileTest, ProcessesMayBeNamedAfterTheirEvents) {
  const std::string text = WriteTimeline(RandomTimeline(5));
  const std::string first = WriteTimeline({.processes = RandomTimeline(5).processes});
  // The same events, then the processes.
  std::string events = WriteTimeline({.events = RandomTimeline(5).events});
  events.erase(events.rfind(']'));
  const std::string late = events + "," + first.substr(first.find('[') + 1);
  ASSERT_TRUE(Import(late).ok()) << Import(late).status();
  EXPECT_EQ(Import(late)->profile.content(), Import(text)->profile.content());
}

TEST(TimelineProfileTest, TheListOfEventsAloneIsATimeline) {
  const std::string text = WriteTimeline(RandomTimeline(5));
  const size_t begin = text.find('[');
  EXPECT_EQ(Import(text.substr(begin, text.rfind(']') + 1 - begin))->profile.content(),
            Import(text)->profile.content());
}

TEST(TimelineProfileTest, WhatIsNoTimelineIsRefusedWithItsPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "recording: byte 0: no JSON, or one that is cut short"},
      {"{\"traceEvents\": [", "no JSON, or one that is cut short"},
      {"{}", "recording: it has no traceEvents"},
      {"{\"traceEvents\": []}", "recording: it has no events"},
      {"[]", "recording: it has no events"},
      {"{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 1, \"dur\": 2}]}",
       "an event without a pid or a ts"},
      {"{\"traceEvents\": [{\"ph\": \"X\", \"pid\": \"host0\", \"ts\": 1}]}",
       "an event with a text as pid"},
      {"{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 1, \"ts\": 1e300}]}", "is not a time"},
      {"{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 1, \"ts\": 1, \"args\": {\"name\": \"a\"}}]}",
       "event \"a\" is of process 1, which is not named as a device"},
      {Event("/job:ps/task:0/cpu:0 Compute\"}}, {\"ph\": \"X\", \"pid\": 1, \"ts\": 1, \"args\": "
             "{\"name\": \"a\"}}"),
       "import the RunMetadata"},
      {Event("/cpu:0 Compute\"}}, {\"ph\": \"X\", \"pid\": 1, \"ts\": 1, \"args\": {\"name\": "
             "\"RecvTensor\", \"op\": \"RecvTensor\"}}"),
       "import the RunMetadata"},
      {std::string(100, '['), "nested more than 64 deep"},
      {"{\"traceEvents\": \"" + std::string(2 << 20, 'x') + "\"}", "longer than a mebibyte"},
  };
  for (const auto& [text, says] : cases)
    EXPECT_THAT(Told(Import(text).status()), HasSubstr(says)) << text.substr(0, 100);
}

TEST(TimelineProfileTest, NotesSayWhatWasAssumed) {
  const std::vector<std::string> notes = Import(WriteTimeline(RandomTimeline(5)))->notes;
  EXPECT_THAT(notes, Contains(HasSubstr("variables without a size stay on the worker")));
  EXPECT_THAT(notes, Contains(HasSubstr("Made: the times of the step")));
}

}  // namespace
}  // namespace stepcast::timeline_profile_test
