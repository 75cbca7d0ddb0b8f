#include "core/importing/pytorch/pytorch_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "core/base/error.h"
#include "tests/core/importing/lone_worker.h"
#include "tests/core/importing/pytorch_writer.h"
#include "tests/core/importing/random_training.h"

namespace stepcast::pytorch_trace_test {
namespace {

using ::stepcast::testing::LoneStepNs;
using ::stepcast::testing::PyTorchForm;
using ::stepcast::testing::PyTorchRecording;
using ::stepcast::testing::RandomPyTorchForm;
using ::stepcast::testing::Told;
using ::stepcast::testing::WritePyTorchTrace;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

PyTorchTraceOptions Options() {
  return {.recording = {.model = "resnet50",
                        .batch_size = 32,
                        .platform = {.bandwidth_bytes_per_second = 1e9}}};
}

absl::StatusOr<ImportedProfile> Import(const std::string& text,
                                       const PyTorchTraceOptions& options = Options(),
                                       const ProfileLimits& limits = {}) {
  TextSource source(text);
  return ImportPyTorchTrace(source, options, limits, NeverStop);
}

absl::StatusOr<ImportedProfile> ImportForm(const PyTorchForm& form) {
  return Import(WritePyTorchTrace(form).text);
}

std::vector<int64_t> SizesOf(const Profile& profile, Collective kind) {
  std::vector<int64_t> sizes;
  for (const Operation& operation : profile.operations()) {
    if (operation.collective == kind) sizes.push_back(operation.size_bytes);
  }
  return sizes;
}

const Operation& OperationOf(const Profile& profile, const std::string& name) {
  for (const Operation& operation : profile.operations()) {
    if (operation.name == name) return operation;
  }
  ADD_FAILURE() << "no operation " << name;
  return profile.operations().front();
}

std::vector<std::string> AwaitedBy(const Profile& profile, const std::string& name) {
  std::vector<std::string> names;
  for (const int32_t before : OperationOf(profile, name).waiting_for)
    names.push_back(profile.operations()[static_cast<size_t>(before)].name);
  return names;
}

TEST(PyTorchTraceTest, EachGradientIsSentAfterWhatMadeItAndCopiedBackOnceItHasCome) {
  const absl::StatusOr<ImportedProfile> imported = ImportForm({.elements = {300'000, 64}});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  EXPECT_EQ(profile.framework(), "pytorch");
  EXPECT_EQ(profile.batch_size(), 32);
  EXPECT_THAT(SizesOf(profile, Collective::kAllReduce), ElementsAre(1'200'000, 256));
  EXPECT_THAT(profile.content().buckets->sizes_bytes, ElementsAre(1'200'000, 256));
  EXPECT_THAT(AwaitedBy(profile, "gradient/0"), ElementsAre("backward/0"));
  EXPECT_THAT(AwaitedBy(profile, "backward/1"), ElementsAre("backward/0"));
  EXPECT_THAT(AwaitedBy(profile, "gradient/1"), ElementsAre("backward/1"));
  EXPECT_THAT(AwaitedBy(profile, "copy/0"), ElementsAre("backward/end", "gradient/0"));
  EXPECT_THAT(AwaitedBy(profile, "copy/1"), ElementsAre("copy/0", "gradient/1"));
  EXPECT_EQ(OperationOf(profile, "gradient/1").parameter, "gradient/1");
}

TEST(PyTorchTraceTest, WithoutBucketsTheOptimizerWaitsForAllGradients) {
  const absl::StatusOr<ImportedProfile> imported =
      ImportForm({.ddp = false, .elements = {300'000, 64}});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  EXPECT_FALSE(profile.content().buckets.has_value());
  EXPECT_THAT(AwaitedBy(profile, "optimizer"),
              ElementsAre("backward/1", "gradient/0", "gradient/1"));
  EXPECT_THAT(imported->notes, Contains(HasSubstr("By its rule (1 MiB first, then 25) they would "
                                                  "be 2 of 1200000 (")));
}

// Nanoseconds of an operation in the last step; -1: there is none.
int64_t LastNs(const Profile& profile, const std::string& name) {
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    EXPECT_EQ(operation.pass == Pass::kDataLoading, operation.name == "data_loading");
    if (operation.name == name)
      return profile.steps().back().end_ns[i] - profile.steps().back().start_ns[i];
  }
  return -1;
}

TEST(PyTorchTraceTest, WaitingForTheDataLoaderIsAnOperationOfItsOwn) {
  struct Case {
    PyTorchForm form;
    int64_t least_data_us;
    int64_t most_data_us;
    int64_t host_us;  // -1: there is none
  };
  for (const Case& each : std::vector<Case>{
           {{.data_us = 5000}, 5000, 5000, -1},
           {{.late_data_us = 3000}, 3000, 3000, -1},
           {{.data_us = 5000, .late_data_us = 3000}, 8000, 8000, -1},
           // The GPU still computes when it begins; its first kernel runs 5 us after its launch.
           {{.gpu = true, .data_us = 5000}, 4000, 4999, 5},
           {{.gpu = true, .late_data_us = 3000}, 2000, 2999, 55},
           // The GPU computes all the while.
           {{.gpu = true, .data_us = 100}, 0, 0, -1}}) {
    const PyTorchRecording recording = WritePyTorchTrace(each.form);
    const absl::StatusOr<ImportedProfile> imported = Import(recording.text);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Profile& profile = imported->profile;
    EXPECT_GE(LastNs(profile, "data_loading"), 1000 * each.least_data_us);
    EXPECT_LE(LastNs(profile, "data_loading"), 1000 * each.most_data_us);
    EXPECT_EQ(LastNs(profile, "host"), each.host_us < 0 ? -1 : 1000 * each.host_us);
    EXPECT_EQ(LoneStepNs(profile, profile.steps().back()), recording.step_ns.back());
    EXPECT_THAT(imported->notes, Contains(HasSubstr("Found data loading")));
  }
  const absl::StatusOr<ImportedProfile> without = ImportForm({.loading_us = 5000});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(LastNs(without->profile, "data_loading"), -1);
}

TEST(PyTorchTraceTest, OneWorkerTakesAsLongAsTheRecording) {
  int checked = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    PyTorchForm form = RandomPyTorchForm(seed);
    form.workers = 1;
    const PyTorchRecording recording = WritePyTorchTrace(form);
    const absl::StatusOr<ImportedProfile> imported = Import(recording.text);
    ASSERT_TRUE(imported.ok()) << imported.status() << " seed " << seed;
    const Profile& profile = imported->profile;
    ASSERT_EQ(profile.steps().size(), recording.step_ns.size() - 2) << "seed " << seed;
    for (size_t i = 0; i < profile.steps().size(); ++i, ++checked) {
      EXPECT_EQ(LoneStepNs(profile, profile.steps()[i]), recording.step_ns[i + 2])
          << "seed " << seed << " step " << i;
    }
    int64_t bytes = 0;
    for (const int64_t elements : form.elements) bytes += 4 * elements;
    const std::vector<int64_t> sizes = SizesOf(profile, Collective::kAllReduce);
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), bytes) << "seed " << seed;
  }
  EXPECT_GT(checked, 300);
}

TEST(PyTorchTraceTest, OfManyRanksItKeepsWhatOneWorkerAloneWouldCompute) {
  for (const bool gpu : {false, true}) {
    const absl::StatusOr<ImportedProfile> alone = ImportForm({.gpu = gpu, .seed = 3});
    const absl::StatusOr<ImportedProfile> many = ImportForm({.gpu = gpu, .workers = 4, .seed = 3});
    ASSERT_TRUE(alone.ok() && many.ok()) << alone.status() << many.status();
    const Profile& profile = many->profile;
    EXPECT_THAT(many->notes, Contains(HasSubstr("waited for collectives of 4 workers")));
    EXPECT_THAT(alone->notes, Not(Contains(HasSubstr("waited for collectives"))));
    // The host's work beside the GPU is told apart.
    EXPECT_EQ(profile.operations().size(), alone->profile.operations().size() + (gpu ? 1 : 0));
    for (size_t s = 0; s < profile.steps().size(); ++s) {
      for (size_t i = 0; i < alone->profile.operations().size(); ++i) {
        // The host of several workers looks at its own clock once more.
        EXPECT_NEAR(profile.steps()[s].end_ns[i], alone->profile.steps()[s].end_ns[i],
                    gpu ? 0 : 2000)
            << profile.operations()[i].name << " step " << s;
      }
    }
  }
}

TEST(PyTorchTraceTest, WhatTheHostDoesBesideAWaitingGpuIsAStreamOfItsOwn) {
  const absl::StatusOr<ImportedProfile> imported =
      ImportForm({.gpu = true, .workers = 2, .collective_us = 5000});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Operation& host = OperationOf(imported->profile, "host_alone");
  EXPECT_EQ(host.stream, 1);
  EXPECT_THAT(host.waiting_for, IsEmpty());
}

TEST(PyTorchTraceTest, TheFieldsOfAnyYearSayTheSame) {
  for (const bool gpu : {false, true}) {
    const absl::StatusOr<ImportedProfile> now = ImportForm({.gpu = gpu, .relative = true});
    const absl::StatusOr<ImportedProfile> then = ImportForm({.gpu = gpu, .names_of_2021 = true});
    ASSERT_TRUE(now.ok() && then.ok()) << now.status() << then.status();
    EXPECT_EQ(now->profile.content().buckets, then->profile.content().buckets);
    // Then the engine around a gradient left no event, so where its hook ended is not known.
    EXPECT_EQ(LoneStepNs(now->profile, now->profile.steps()[0]),
              LoneStepNs(then->profile, then->profile.steps()[0]));
    EXPECT_EQ(SizesOf(now->profile, Collective::kAllReduce),
              SizesOf(then->profile, Collective::kAllReduce));
  }
}

TEST(PyTorchTraceTest, WithoutShapesTheBucketsOfADistributedJobAreSentAsTheyAre) {
  const absl::StatusOr<ImportedProfile> imported = ImportForm({.gpu = true, .shapes = false});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  const std::vector<int64_t> sizes = SizesOf(profile, Collective::kAllReduce);
  EXPECT_EQ(sizes, profile.content().buckets->sizes_bytes);
  EXPECT_EQ(sizes.size(), 2U);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("the gradients' sizes were not recorded")));
  EXPECT_THAT(AwaitedBy(profile, "copy/1"), ElementsAre("copy/0", "bucket/1"));
}

TEST(PyTorchTraceTest, ACapOfTheUsersOwnIsFoundAndTheDefaultNamed) {
  const absl::StatusOr<ImportedProfile> imported = ImportForm(
      {.bucket_cap_bytes = 500'000, .elements = {300'000, 100'000, 64, 50'000, 30'000, 10}});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->profile.content().buckets->sizes_bytes,
              ElementsAre(1'200'000, 600'256, 120'040));
  EXPECT_THAT(imported->notes, Contains(HasSubstr("a cap of 0.38 to 0.57 MiB makes them")));
  EXPECT_THAT(imported->notes, Contains(HasSubstr("they would be 2 of 1200000 (")));
}

TEST(PyTorchTraceTest, TimesAreScaledToAStepWithoutTheProfiler) {
  PyTorchTraceOptions options = Options();
  options.step_seconds = 0.002;
  const absl::StatusOr<ImportedProfile> imported = Import(WritePyTorchTrace({}).text, options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  double sum = 0;
  for (const RecordedStep& step : imported->profile.steps())
    sum += static_cast<double>(LoneStepNs(imported->profile, step));
  EXPECT_NEAR(sum / static_cast<double>(imported->profile.steps().size()), 2e6, 10);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("so that a step lasts the 0.002 s")));
}

TEST(PyTorchTraceTest, AHostThatKeepsTheGpuWaitingIsTold) {
  const absl::StatusOr<ImportedProfile> quick = ImportForm({.gpu = true});
  const absl::StatusOr<ImportedProfile> idle = ImportForm({.gpu = true, .loading_us = 3000});
  ASSERT_TRUE(quick.ok() && idle.ok()) << quick.status() << idle.status();
  EXPECT_THAT(quick->notes, Not(Contains(HasSubstr("bound by the host"))));
  EXPECT_THAT(idle->notes, Contains(HasSubstr("The recording is bound by the host")));
  EXPECT_LT(quick->profile.content().device_idle_fraction.value(), kIdleFractionOfHostBound);
  EXPECT_GT(idle->profile.content().device_idle_fraction.value(), 0.3);
  const absl::StatusOr<ImportedProfile> no_gpu = ImportForm({.gpu = false});
  ASSERT_TRUE(no_gpu.ok()) << no_gpu.status();
  EXPECT_FALSE(no_gpu->profile.content().device_idle_fraction.has_value());
}

TEST(PyTorchTraceTest, ABroadcastOfBuffersHoldsTheForwardPass) {
  std::string text = WritePyTorchTrace({.steps = 3}).text;
  // In the forward pass of the only step that is kept.
  const std::string forward = R"("name": "DistributedDataParallel.forward")";
  const size_t event = text.rfind("{\"ph\"", text.rfind(forward));
  const std::string begin = text.substr(text.find("\"ts\": ", event) + 6, 16);
  const std::string at = absl::StrCat(std::stoll(begin) + 50);
  text.insert(
      event,
      absl::StrCat(
          R"({"ph": "X", "cat": "cpu_op", "name": "c10d::broadcast_", "pid": 1, "tid": 100, "ts": )",
          at,
          R"(, "dur": 9, "args": {}}, {"ph": "X", "cat": "user_annotation", "name": "gloo:broadcast", )",
          R"("pid": 1, "tid": 102, "ts": )", at,
          R"(, "dur": 4, "args": {"Input Dims": [[9600]], "Input type": ["c10::BFloat16"]}}, )"));
  const absl::StatusOr<ImportedProfile> imported = Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  EXPECT_THAT(SizesOf(profile, Collective::kBroadcast), ElementsAre(19'200));
  EXPECT_THAT(AwaitedBy(profile, "broadcast/0"), ElementsAre("until_broadcast/0"));
  EXPECT_THAT(AwaitedBy(profile, "forward"), ElementsAre("until_broadcast/0", "broadcast/0"));
}

TEST(PyTorchTraceTest, WhatIsMissingIsNamedWithWhatToRecord) {
  const std::string good = WritePyTorchTrace({}).text;
  const std::string plain = WritePyTorchTrace({.ddp = false, .shapes = false}).text;
  const auto without = [&](const char* what) {
    return absl::StrReplaceAll(good, {{what, "gone"}});
  };
  const std::pair<std::string, const char*> cases[] = {
      {plain, "record with record_shapes=True"},
      {without("ProfilerStep#"), "it has no ProfilerStep: record training steps, "},
      {without("torch::autograd::AccumulateGrad"), "no torch::autograd::AccumulateGrad"},
      {WritePyTorchTrace({.steps = 2}).text, "record at least three, better twelve"},
      {absl::StrReplaceAll(good,
                           {{R"("cat": "cpu_op", )", ""}, {R"("cat": "user_annotation", )", ""}}),
       "kineto_available"},
      {R"({"schema": "1.1", "nodes": [{"id": 1}]})", "execution trace"},
      {absl::StrReplaceAll(good,
                           {{R"("deviceProperties": [)", R"("deviceProperties": [{"id": 0})"}}),
       "ProfilerActivity.CUDA"},
      {R"({"traceEvents": []})", "no event with a length"},
      {R"({"events": []})", "no traceEvents"},
      {good.substr(0, good.size() / 2), "cut short"},
      {absl::StrReplaceAll(good, {{"gloo:all_reduce", "gloo:_all_gather_base"}}), "FSDP"},
      {absl::StrReplaceAll(good, {{"\"ts\": ", "\"ts\": 9"}}), "is not a time"},
      {"gradients", "no JSON"}};
  for (const auto& [text, expected] : cases) {
    const absl::StatusOr<ImportedProfile> imported = Import(text);
    ASSERT_FALSE(imported.ok()) << expected;
    EXPECT_EQ(imported.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailsOf(imported.status()).reason, "IMPORT_INVALID");
    EXPECT_THAT(Told(imported.status()), HasSubstr(expected));
  }
}

TEST(PyTorchTraceTest, AStepUnlikeMostIsLeftOutAndWithoutAUsualOneAllAreRefused) {
  for (const int steps : {4, 5}) {
    std::string text = WritePyTorchTrace({.steps = steps}).text;
    const size_t last = text.rfind("\"torch::autograd::AccumulateGrad");
    text.replace(last, 6, "\"other");
    const absl::StatusOr<ImportedProfile> imported = Import(text);
    ASSERT_EQ(imported.ok(), steps == 5) << imported.status();
    if (!imported.ok()) {
      EXPECT_THAT(Told(imported.status()),
                  HasSubstr("ProfilerStep#8 and ProfilerStep#7 (7 gradients, others 6) differ, and "
                            "no more than half of its 2 steps are alike: record steps that are"));
      continue;
    }
    EXPECT_EQ(imported->profile.steps().size(), 2U);
    EXPECT_THAT(imported->notes, Contains(HasSubstr("ProfilerStep#9 (6 gradients, others 7)")));
  }
}

TEST(PyTorchTraceTest, AStepFarLongerThanTheOthersIsLeftOutAndSaid) {
  std::string text = WritePyTorchTrace({.steps = 6}).text;
  const size_t last = text.rfind("ProfilerStep#10");
  text.insert(text.find_first_of(".,", text.find("\"dur\": ", last)), "0");
  const absl::StatusOr<ImportedProfile> imported = Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->profile.steps().size(), 3U);
  EXPECT_THAT(imported->notes, AllOf(Contains(HasSubstr("times the median)")),
                                     Contains(HasSubstr("1 of 4 steps that last far longer"))));
}

TEST(PyTorchTraceTest, AStepCutShortIsLeftOutAndSaid) {
  std::string text = WritePyTorchTrace({.steps = 6}).text;
  const size_t last = text.rfind("ProfilerStep#10");
  const size_t length = text.find("\"dur\": ", last) + 7;
  text.replace(length, text.find(',', length) - length, "9");
  const absl::StatusOr<ImportedProfile> imported = Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->profile.steps().size(), 3U);
  EXPECT_THAT(imported->notes,
              Contains(HasSubstr("ProfilerStep#10 (shorter than half the median)")));
}

TEST(PyTorchTraceTest, FaultsOfTheOptionsAreAtTheirFields) {
  PyTorchTraceOptions options = Options();
  options.recording.batch_size = 0;
  options.step_seconds = -1;
  const absl::StatusOr<ImportedProfile> imported = Import(WritePyTorchTrace({}).text, options);
  ASSERT_FALSE(imported.ok());
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(imported.status()).faults) fields.push_back(fault.field);
  EXPECT_THAT(fields, ElementsAre("batch_size", "step_seconds"));
}

TEST(PyTorchTraceTest, LimitsOfAProfileAreKept) {
  const std::string text = WritePyTorchTrace({}).text;
  const absl::StatusOr<ImportedProfile> few = Import(text, Options(), {.max_operations = 20});
  EXPECT_THAT(Told(few.status()), HasSubstr("max_operations"));
}

}  // namespace
}  // namespace stepcast::pytorch_trace_test
