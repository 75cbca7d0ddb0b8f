#include "core/importing/horovod/horovod_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/core/importing/lone_worker.h"
#include "tests/core/importing/random_training.h"
#include "tests/core/importing/timeline_writer.h"

namespace stepcast::horovod_timeline_test {
namespace {

using ::stepcast::testing::LoneStepNs;
using ::stepcast::testing::Told;
using ::stepcast::testing::WriteHorovodTimeline;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ImportedProfile> Import(const std::string& text, const ProfileLimits& limits = {}) {
  TextSource source(text);
  return ImportHorovodTimeline(source,
                               {.recording = {.model = "m",
                                              .batch_size = 8,
                                              .platform = {.bandwidth_bytes_per_second = 1e9}}},
                               limits, NeverStop);
}

TEST(HorovodTimelineTest, TensorsAreSentInTheOrderInWhichThisWorkerHadThemReady) {
  for (const bool ended : {true, false}) {
    const absl::StatusOr<ImportedProfile> imported = Import(WriteHorovodTimeline(5, ended));
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Profile& profile = imported->profile;
    std::vector<std::string> names;
    for (const Operation& operation : profile.operations()) names.push_back(operation.name);
    EXPECT_THAT(names, ElementsAre("until/fc.bias", "fc.bias", "until/fc.weight", "fc.weight"));
    EXPECT_EQ(profile.operations()[1].size_bytes, 2000);
    EXPECT_EQ(profile.operations()[3].size_bytes, 2'048'000);
    EXPECT_EQ(profile.operations()[3].parameter, "fc.weight");
    EXPECT_THAT(profile.operations()[3].waiting_for, ElementsAre(2));
    ASSERT_EQ(profile.steps().size(), 3U);
    for (size_t s = 0; s < 3; ++s) {
      const auto step = static_cast<int64_t>(s) + 2;
      EXPECT_EQ(profile.steps()[s].end_ns[0], 1000 * (600 + step));
      EXPECT_EQ(LoneStepNs(profile, profile.steps()[s]), 1000 * (800 + step));
    }
    EXPECT_THAT(imported->notes, Contains(HasSubstr("0.197 ms a step between the last tensor")));
  }
}

TEST(HorovodTimelineTest, WhatIsMissingIsNamed) {
  const std::string good = WriteHorovodTimeline(4);
  const std::pair<std::string, const char*> cases[] = {
      {WriteHorovodTimeline(2), "it has 2 steps"},
      {absl::StrReplaceAll(good, {{"\"shape\"", "\"form\""}}), "ends without dtype and shape"},
      {absl::StrReplaceAll(good, {{"float16", "complex64"}}),
       "\"fc.bias\" has dtype \"complex64\", whose size is not known"},
      {absl::StrReplaceAll(good, {{"\"[1000]\"", "\"[-1000]\""}}),
       "has shape \"[-1000]\", which is not of 1 to 68719476736 elements"},
      {absl::StrReplaceAll(good, {{"[1000, 512]", "[4000000000, 4000000000]"}}),
       "has shape \"[4000000000, 4000000000]\""},
      {absl::StrReplaceAll(good, {{"NEGOTIATE_ALLREDUCE", "QUEUE"}}), "no ALLREDUCE of a tensor"},
      {absl::StrReplaceAll(good, {{"NEGOTIATE_ALLREDUCE", "NEGOTIATE_ALLGATHER"}}),
       "\"ALLGATHER\""},
      {good.substr(0, good.size() / 2), "it has 1 steps"},
      {good.substr(0, good.size() / 2) + "}}}", "cut short"},
      {"{\"traceEvents\": []}", "a list of events"},
      {"[]", "no ALLREDUCE of a tensor"}};
  for (const auto& [text, expected] : cases) {
    const absl::StatusOr<ImportedProfile> imported = Import(text);
    ASSERT_FALSE(imported.ok()) << expected;
    EXPECT_EQ(DetailsOf(imported.status()).reason, "IMPORT_INVALID");
    EXPECT_THAT(Told(imported.status()), HasSubstr(expected));
  }
}

TEST(HorovodTimelineTest, WhatIsNotReducedInEveryStepIsLeftOut) {
  std::string text = WriteHorovodTimeline(5, false);
  absl::StrAppend(&text,
                  R"(, {"name": "process_name", "ph": "M", "pid": 3, "args": {"name": "accuracy"}},
      {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 9000, "pid": 3}, {"ph": "E", "ts": 9001, "pid": 3},
      {"ph": "B", "name": "ALLREDUCE", "ts": 9002, "pid": 3},
      {"ph": "E", "ts": 9003, "pid": 3, "args": {"dtype": "float32", "shape": "[]"}}])");
  const absl::StatusOr<ImportedProfile> imported = Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->profile.operations().size(), 4U);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("1 tensors that are not reduced in most steps")));
}

// A job that is stopped leaves what its last write held, which ends anywhere.
// The timeline, from a time on later by so much, all in microseconds.
std::string Delayed(std::string text, int64_t from, int64_t by) {
  const std::string key = "\"ts\": ";
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    const size_t begin = at + key.size();
    const size_t size = text.find(',', begin) - begin;
    const int64_t time = std::stoll(text.substr(begin, size));
    if (time >= from) text.replace(begin, size, absl::StrCat(time + by));
  }
  return text;
}

TEST(HorovodTimelineTest, AStepThatLastsFarLongerIsLeftOut) {
  const std::string text = WriteHorovodTimeline(12);
  const auto usual = Import(Delayed(text, 6900, 500));
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_EQ(usual->profile.steps().size(), 10U);
  const auto odd = Import(Delayed(text, 6900, 9000));
  ASSERT_TRUE(odd.ok()) << odd.status();
  ASSERT_EQ(odd->profile.steps().size(), 9U);
  for (const RecordedStep& step : odd->profile.steps()) EXPECT_LT(step.end_ns[0], 1'000'000);
  EXPECT_THAT(odd->notes, Contains(AllOf(HasSubstr("1 of 10 steps that last far longer"),
                                         HasSubstr("step 7 (10.0 times the median)"))));
}

// The timeline without a tensor's events of a step.
std::string Without(const std::string& text, int pid, int step) {
  const std::string key = "\"ts\": ";
  std::vector<std::string> kept;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t at = line.find(key);
    const bool is_of_tensor = absl::StrContains(line, absl::StrCat("\"pid\": ", pid));
    if (is_of_tensor && at != absl::string_view::npos) {
      const int64_t time = std::stoll(std::string(line.substr(at + key.size())));
      if (time > 500 + 1000 * step && time <= 1500 + 1000 * step) continue;
    }
    kept.emplace_back(line);
  }
  return absl::StrJoin(kept, "\n");
}

// Other steps stay as they are, whatever is missing and where, and in whatever order tensors come.
TEST(HorovodTimelineTest, AStepWithoutAnAllReduceIsLeftOutAlone) {
  const std::string text = WriteHorovodTimeline(12);
  const auto whole = Import(text);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int pid : {1, 2}) {
    for (const int step : {3, 6, 10}) {
      const auto imported = Import(Without(text, pid, step));
      ASSERT_TRUE(imported.ok()) << imported.status();
      EXPECT_EQ(imported->profile.operations(), whole->profile.operations());
      std::vector<RecordedStep> expected = whole->profile.steps();
      expected.erase(expected.begin() + (step - 2));
      EXPECT_EQ(imported->profile.steps(), expected) << pid << " " << step;
      EXPECT_THAT(imported->notes,
                  Contains(HasSubstr(absl::StrCat("1 of 10 steps in which not all tensors are "
                                                  "reduced: step ",
                                                  step + 1, " (1 of 2)"))));
    }
    // The gradient is none that is left out.
    const auto twice = Import(Without(Without(text, pid, 5), pid, 9));
    ASSERT_TRUE(twice.ok()) << twice.status();
    EXPECT_EQ(twice->profile.operations(), whole->profile.operations());
    EXPECT_EQ(twice->profile.steps().size(), 8U);
  }
}

TEST(HorovodTimelineTest, TensorsMayComeInAnotherOrderInSomeSteps) {
  // fc.weight is ready with fc.bias, and the ties are broken either way.
  std::string text = WriteHorovodTimeline(12);
  for (int step = 1; step < 12; step += 2) {
    text = absl::StrReplaceAll(text, {{absl::StrCat("\"ts\": ", 1300 + 1001 * step, ","),
                                       absl::StrCat("\"ts\": ", 1050 + 1000 * step, ",")}});
  }
  const auto imported = Import(Without(text, 1, 7));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->profile.steps().size(), 9U);
  for (const RecordedStep& step : imported->profile.steps())
    EXPECT_LT(LoneStepNs(imported->profile, step), 1'000'000);
}

TEST(HorovodTimelineTest, AnEventThatIsCutShortIsLeftOut) {
  const std::string text = WriteHorovodTimeline(6, false);
  const size_t fifth = WriteHorovodTimeline(5, false).size();
  const auto whole = Import(text.substr(0, fifth));
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (size_t size = fifth + 1; size < text.size(); ++size) {
    const auto imported = Import(text.substr(0, size));
    ASSERT_TRUE(imported.ok()) << size << ": " << imported.status();
    EXPECT_EQ(imported->profile.operations(), whole->profile.operations()) << size;
    EXPECT_GE(imported->profile.steps().size(), whole->profile.steps().size()) << size;
    EXPECT_THAT(imported->notes, Contains(HasSubstr("the list has no end"))) << size;
  }
}

TEST(HorovodTimelineTest, BrokenTimelinesAreRefusedOrMakeASoundProfile) {
  const std::string good = WriteHorovodTimeline(5);
  int sound = 0;
  int refused = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random({seed, 14});
    std::string text = good;
    for (uint64_t count = 1 + random.Below(3); count > 0; --count) {
      const size_t at = random.Below(text.size());
      text[at] = static_cast<char>(seed % 2 == 0 ? random.Below(256) : '0' + random.Below(10));
    }
    if (random.Below(4) == 0) text.resize(random.Below(text.size()));
    const absl::StatusOr<ImportedProfile> imported = Import(text);
    ++(imported.ok() ? sound : refused);
    if (!imported.ok()) {
      EXPECT_EQ(DetailsOf(imported.status()).reason, "IMPORT_INVALID") << "seed " << seed;
    }
  }
  EXPECT_GT(sound, 100);
  EXPECT_GT(refused, 100);
}

TEST(HorovodTimelineTest, LimitsAreKept) {
  EXPECT_THAT(Told(Import(WriteHorovodTimeline(4), {.max_operations = 2}).status()),
              HasSubstr("max_operations"));
  EXPECT_THAT(Told(Import(WriteHorovodTimeline(4), {.max_recorded_times = 5}).status()),
              HasSubstr("max_recorded_times"));
}

}  // namespace
}  // namespace stepcast::horovod_timeline_test
