#include "core/model/validate_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/random.h"
#include "tests/core/model/random_draft.h"
#include "tests/support/profile_json.h"

namespace stepcast::validate_profile_test {
namespace {

using ::stepcast::testing::RandomDraft;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// recv -> forward -> send -> update, and a second download.
ProfileDraft SmallDraft() {
  ProfileDraft draft{
      .batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}, .parameter_servers = 2};
  draft.operations = {
      {.name = "recv", .resource = Resource::kDownlink, .size_bytes = 1000, .parameter = "w"},
      {.name = "forward", .resource = Resource::kWorker, .waiting_for = {0}},
      {.name = "send",
       .resource = Resource::kUplink,
       .size_bytes = 1000,
       .waiting_for = {1},
       .parameter = "w"},
      {.name = "update",
       .resource = Resource::kParameterServer,
       .waiting_for = {2},
       .parameter = "w"},
      {.name = "other",
       .resource = Resource::kDownlink,
       .parameter_server = 1,
       .size_bytes = 5,
       .parameter = "v"},
  };
  draft.steps = {{.start_ns = {0, 10, 20, 30, 0}, .end_ns = {10, 20, 30, 40, 1}},
                 {.start_ns = {0, 11, 20, 30, 0}, .end_ns = {11, 20, 30, 40, 1}}};
  return draft;
}

std::vector<std::string> Paths(const std::vector<Fault>& faults) {
  std::vector<std::string> paths;
  paths.reserve(faults.size());
  for (const Fault& fault : faults) paths.push_back(fault.field);
  return paths;
}

std::string Show(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) text += fault.field + ": " + fault.description + "\n";
  return text;
}

struct BadDraft {
  std::string title;
  std::function<void(ProfileDraft&)> spoil;
  std::string path;
  std::string says;  // part of the description
};

class OneFaultTest : public ::testing::TestWithParam<BadDraft> {};

TEST_P(OneFaultTest, IsReportedAtItsPathWithTheOffendingValue) {
  ProfileDraft draft = SmallDraft();
  ASSERT_THAT(Paths(ValidateProfile(draft, {})), IsEmpty());
  GetParam().spoil(draft);
  const std::vector<Fault> faults = ValidateProfile(draft, {});
  ASSERT_THAT(Paths(faults), ElementsAre(GetParam().path)) << Show(faults);
  EXPECT_THAT(faults[0].description, HasSubstr(GetParam().says));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

INSTANTIATE_TEST_SUITE_P(
    Rules, OneFaultTest,
    ::testing::ValuesIn(std::vector<BadDraft>{
        {"LongDisplayName", [](ProfileDraft& d) { d.display_name.assign(257, 'x'); }, "display_name", "257 bytes, which is above the limit max_text_bytes = 256"},
        {"LongModel", [](ProfileDraft& d) { d.model.assign(300, 'x'); }, "model", "max_text_bytes = 256"},
        {"LongFramework", [](ProfileDraft& d) { d.framework.assign(300, 'x'); }, "framework", "max_text_bytes = 256"},
        {"EmptyLabelKey", [](ProfileDraft& d) { d.labels[""] = "x"; }, "labels[\"\"]", "needs a key"},
        {"LongLabelKey", [](ProfileDraft& d) { d.labels[std::string(64, 'k')] = "x"; }, "labels[\"" + std::string(64, 'k') + "\"]", "max_label_key_bytes = 63"},
        {"LongLabelValue", [](ProfileDraft& d) { d.labels["k"].assign(257, 'v'); }, "labels[\"k\"]", "max_text_bytes = 256"},
        {"ManyLabels",
         [](ProfileDraft& d) {
           for (int i = 0; i < 65; ++i) d.labels["k" + std::to_string(i)] = "";
         },
         "labels", "65 is above the limit max_labels = 64"},
        {"NoBatch", [](ProfileDraft& d) { d.batch_size = 0; }, "batch_size", "0 is below 1"},
        {"NegativeBatch", [](ProfileDraft& d) { d.batch_size = -3; }, "batch_size", "-3 is below 1"},
        {"HugeBatch", [](ProfileDraft& d) { d.batch_size = 1'000'000'001; }, "batch_size", "1000000001 is above the limit max_batch_size = 1000000000"},
        {"NoBandwidth", [](ProfileDraft& d) { d.platform.bandwidth_bytes_per_second = 0; }, "platform.bandwidth_bytes_per_second", "0 is not from 1"},
        {"NanBandwidth", [](ProfileDraft& d) { d.platform.bandwidth_bytes_per_second = kNan; }, "platform.bandwidth_bytes_per_second", "nan"},
        {"InfiniteBandwidth", [](ProfileDraft& d) { d.platform.bandwidth_bytes_per_second = kInfinity; }, "platform.bandwidth_bytes_per_second", "inf"},
        {"HugeBandwidth", [](ProfileDraft& d) { d.platform.bandwidth_bytes_per_second = 2e15; }, "platform.bandwidth_bytes_per_second", "2e+15"},
        {"NegativeOverheadPerByte", [](ProfileDraft& d) { d.platform.parsing_overhead.seconds_per_byte = -1e-9; },
         "platform.parsing_overhead.seconds_per_byte", "-1e-09 is a negative time"},
        {"HugeOverheadPerByte", [](ProfileDraft& d) { d.platform.parsing_overhead.seconds_per_byte = 1.5; }, "platform.parsing_overhead.seconds_per_byte",
         "1.5 is above the maximum of 1"},
        {"NanOverhead", [](ProfileDraft& d) { d.platform.parsing_overhead.seconds = kNan; }, "platform.parsing_overhead.seconds", "nan"},
        {"HugeOverhead", [](ProfileDraft& d) { d.platform.parsing_overhead.seconds = 3601; }, "platform.parsing_overhead.seconds", "3601"},
        {"NegativeWindow", [](ProfileDraft& d) { d.platform.window_bytes = -1; }, "platform.window_bytes", "-1 is a negative size"},
        {"NoServers", [](ProfileDraft& d) { d.parameter_servers = 0; }, "parameter_servers", "0 is below 1"},
        {"ManyServers", [](ProfileDraft& d) { d.parameter_servers = 257; }, "parameter_servers", "257 is above the limit max_parameter_servers = 256"},
        {"EmptyName", [](ProfileDraft& d) { d.operations[2].name.clear(); }, "operations[2].name", "needs a name"},
        {"LongName", [](ProfileDraft& d) { d.operations[2].name.assign(513, 'n'); }, "operations[2].name", "max_name_bytes = 512"},
        {"DuplicateName", [](ProfileDraft& d) { d.operations[4].name = "forward"; }, "operations[4].name",
         "\"forward\" is already the name of operations[1]"},
        {"NoResource", [](ProfileDraft& d) { d.operations[1].resource = Resource::kUnspecified; }, "operations[1].resource", "0 is not a known resource"},
        {"UnknownResource", [](ProfileDraft& d) { d.operations[1].resource = static_cast<Resource>(9); }, "operations[1].resource", "9"},
        {"NegativeServer", [](ProfileDraft& d) { d.operations[0].parameter_server = -1; }, "operations[0].parameter_server", "-1"},
        {"ServerOutOfRange", [](ProfileDraft& d) { d.operations[3].parameter_server = 2; }, "operations[3].parameter_server",
         "2 is not the index of one of 2 parameter servers"},
        {"TransferWithoutSize", [](ProfileDraft& d) { d.operations[0].size_bytes = 0; }, "operations[0].size_bytes", "a transfer needs a size"},
        {"NegativeSize", [](ProfileDraft& d) { d.operations[0].size_bytes = -7; }, "operations[0].size_bytes", "-7 is a negative size"},
        {"NegativeSizeOfComputation", [](ProfileDraft& d) { d.operations[1].size_bytes = -7; }, "operations[1].size_bytes", "-7"},
        {"ComputationWithSize", [](ProfileDraft& d) { d.operations[3].size_bytes = 12; }, "operations[3].size_bytes", "12: only a transfer or a collective has a size"},
        {"HugeTransfer", [](ProfileDraft& d) { d.operations[0].size_bytes = (int64_t{1} << 44) + 1; }, "operations[0].size_bytes",
         "17592186044417 is above the limit max_transfer_bytes = 17592186044416"},
        {"NegativeKeptBytes", [](ProfileDraft& d) { d.operations[1].kept_bytes = -9; }, "operations[1].kept_bytes", "-9 is a negative size"},
        {"HugeKeptBytes", [](ProfileDraft& d) { d.operations[1].kept_bytes = (int64_t{1} << 44) + 1; }, "operations[1].kept_bytes",
         "17592186044417 is above the maximum of 17592186044416"},
        {"KeptBytesOfATransfer", [](ProfileDraft& d) { d.operations[0].kept_bytes = 12; }, "operations[0].kept_bytes", "12: only a WORKER keeps anything"},
        {"KeptBytesOfAnUpdate", [](ProfileDraft& d) { d.operations[3].kept_bytes = 12; }, "operations[3].kept_bytes", "12: only a WORKER"},
        {"NegativeOutputBytes", [](ProfileDraft& d) { d.operations[1].output_bytes = -9; }, "operations[1].output_bytes", "-9 is a negative size"},
        {"HugeOutputBytes", [](ProfileDraft& d) { d.operations[1].output_bytes = (int64_t{1} << 44) + 1; }, "operations[1].output_bytes",
         "17592186044417 is above the maximum of 17592186044416"},
        {"OutputBytesOfATransfer", [](ProfileDraft& d) { d.operations[0].output_bytes = 12; }, "operations[0].output_bytes", "12: only a WORKER hands on anything"},
        {"UnknownPass", [](ProfileDraft& d) { d.operations[1].pass = static_cast<Pass>(9); }, "operations[1].pass", "9 is not a known pass"},
        {"GroupOfAComputation", [](ProfileDraft& d) { d.operations[1].group = "tp"; }, "operations[1].group", "\"tp\": only a COLLECTIVE has a group"},
        {"LongGroup", [](ProfileDraft& d) { d.operations[1].group.assign(513, 'g'); }, "operations[1].group", "max_name_bytes = 512"},
        {"NoDevices", [](ProfileDraft& d) { d.devices_per_worker = 0; }, "devices_per_worker", "0 is below 1"},
        {"TooManyDevices", [](ProfileDraft& d) { d.devices_per_worker = 65'537; }, "devices_per_worker", "65537 is above the limit max_devices_per_worker = 65536"},
        {"LongParameter", [](ProfileDraft& d) { d.operations[0].parameter.assign(513, 'p'); }, "operations[0].parameter", "max_name_bytes = 512"},
        {"NegativeDependency", [](ProfileDraft& d) { d.operations[1].waiting_for = {-1}; }, "operations[1].waiting_for[0]", "-1 is not the index"},
        {"DependencyOutOfRange", [](ProfileDraft& d) { d.operations[1].waiting_for = {0, 5}; }, "operations[1].waiting_for[1]",
         "5 is not the index of one of 5 operations"},
        {"DuplicateDependency", [](ProfileDraft& d) { d.operations[1].waiting_for = {0, 4, 0}; }, "operations[1].waiting_for[2]",
         "0 is already listed at waiting_for[0]"},
        {"SelfDependency", [](ProfileDraft& d) { d.operations[1].waiting_for = {0, 1}; }, "operations[1].waiting_for", "a cycle: \"forward\" waits for itself"},
        {"Cycle", [](ProfileDraft& d) { d.operations[1].waiting_for = {0, 3}; }, "operations[1].waiting_for",
         "a cycle of 3 operations: \"forward\" waits for \"update\" waits for \"send\" waits for \"forward\""},
        {"NoSteps", [](ProfileDraft& d) { d.steps.clear(); }, "steps", "at least one recorded step"},
        {"ShortStarts", [](ProfileDraft& d) { d.steps[1].start_ns.pop_back(); }, "steps[1].start_ns", "4 times for 5 operations"},
        {"LongEnds", [](ProfileDraft& d) { d.steps[0].end_ns.push_back(50); }, "steps[0].end_ns", "6 times for 5 operations"},
        {"NegativeStart", [](ProfileDraft& d) { d.steps[1].start_ns[4] = -2; }, "steps[1].start_ns[4]", "-2 is a negative time"},
        {"EndBeforeStart", [](ProfileDraft& d) { d.steps[0].end_ns[3] = 29; }, "steps[0].end_ns[3]", "29 is before the start at 30"},
        {"NegativeEnd", [](ProfileDraft& d) { d.steps[0].end_ns[4] = -1; }, "steps[0].end_ns[4]", "-1 is a negative time"},
        {"LateEnd", [](ProfileDraft& d) { d.steps[0].end_ns[3] = 86'400'000'000'001; }, "steps[0].end_ns[3]",
         "86400000000001 is above the limit max_step_ns = 86400000000000"},
        {"LateStart",
         [](ProfileDraft& d) {
           d.steps[0].start_ns[3] = 86'400'000'000'001;
           d.steps[0].end_ns[3] = 86'400'000'000'002;
         },
         "steps[0].start_ns[3]", "max_step_ns"},
    }),
    [](const auto& bad) { return bad.param.title; });

TEST(ValidateProfileTest, AnEmptyDraftHasEveryFaultInTheOrderOfItsFields) {
  ProfileDraft draft;
  draft.parameter_servers = 0;
  EXPECT_THAT(Paths(ValidateProfile(draft, {})),
              ElementsAre("batch_size", "platform.bandwidth_bytes_per_second", "parameter_servers",
                          "operations", "steps"));
}

TEST(ValidateProfileTest, FaultsOfEveryPartAreReportedTogether) {
  ProfileDraft draft = SmallDraft();
  draft.batch_size = -1;
  draft.platform.parsing_overhead.seconds = -1;
  draft.operations[0].size_bytes = 0;
  draft.operations[1].waiting_for = {9, 3};
  draft.steps[0].start_ns[2] = -5;
  draft.steps[1].end_ns.clear();
  EXPECT_THAT(Paths(ValidateProfile(draft, {})),
              ElementsAre("batch_size", "platform.parsing_overhead.seconds",
                          "operations[0].size_bytes", "operations[1].waiting_for[0]",
                          "operations[1].waiting_for", "steps[0].start_ns[2]", "steps[1].end_ns"));
}

TEST(ValidateProfileTest, TheServerOfAWorkersComputationIsIgnored) {
  ProfileDraft draft = SmallDraft();
  draft.operations[1].parameter_server = 77;
  EXPECT_THAT(ValidateProfile(draft, {}), IsEmpty());
}

TEST(ValidateProfileTest, AStepWithoutTransfersMustTakeTime) {
  ProfileDraft draft = SmallDraft();
  draft.operations = {{.name = "only", .resource = Resource::kWorker}};
  draft.steps = {{.start_ns = {5}, .end_ns = {6}}, {.start_ns = {5}, .end_ns = {5}}};
  EXPECT_THAT(Paths(ValidateProfile(draft, {})), ElementsAre("steps[1]"));
  draft.operations[0] = {.name = "only", .resource = Resource::kDownlink, .size_bytes = 1};
  EXPECT_THAT(ValidateProfile(draft, {}), IsEmpty());
}

TEST(ValidateProfileTest, ALongCycleIsCutAfterTwentyNames) {
  ProfileDraft draft = SmallDraft();
  draft.operations.clear();
  for (int32_t i = 0; i < 30; ++i) {
    draft.operations.push_back({.name = "n" + std::to_string(i),
                                .resource = Resource::kWorker,
                                .waiting_for = {(i + 1) % 30}});
  }
  draft.steps = {{.start_ns = std::vector<int64_t>(30, 0), .end_ns = std::vector<int64_t>(30, 1)}};
  const std::vector<Fault> faults = ValidateProfile(draft, {});
  ASSERT_THAT(Paths(faults), ElementsAre("operations[0].waiting_for"));
  EXPECT_THAT(faults[0].description,
              AllOf(HasSubstr("a cycle of 30 operations: \"n0\" waits for \"n1\""),
                    HasSubstr("\"n19\" waits for ...")));
  EXPECT_THAT(faults[0].description, Not(HasSubstr("\"n20\"")));
}

TEST(ValidateProfileTest, ALimitOnTheSizeIsOneFaultAndEndsTheWork) {
  ProfileDraft draft = SmallDraft();
  draft.operations[3].name.clear();
  EXPECT_THAT(Paths(ValidateProfile(draft, {.max_operations = 4})), ElementsAre("operations"));
  draft.operations[3].name = "update";
  draft.steps[0].end_ns[0] = -1;
  EXPECT_THAT(Paths(ValidateProfile(draft, {.max_steps = 1})), ElementsAre("steps"));
  const std::vector<Fault> times = ValidateProfile(draft, {.max_recorded_times = 9});
  ASSERT_THAT(Paths(times), ElementsAre("steps"));
  EXPECT_THAT(times[0].description,
              HasSubstr("5 operations in 2 steps are above the limit max_recorded_times = 9"));
  draft.steps[0].end_ns[0] = 10;
  EXPECT_THAT(ValidateProfile(draft, {.max_recorded_times = 10}), IsEmpty());
  draft.operations[1].waiting_for = {7};
  const std::vector<Fault> dependencies = ValidateProfile(draft, {.max_dependencies = 2});
  ASSERT_THAT(Paths(dependencies), ElementsAre("operations"));
  EXPECT_THAT(dependencies[0].description, HasSubstr("3 is above the limit max_dependencies = 2"));
}

TEST(ValidateProfileTest, NoMoreThanAThousandFaultsAreKept) {
  ProfileDraft draft = SmallDraft();
  draft.operations.assign(5000, {});
  EXPECT_EQ(ValidateProfile(draft, {}).size(), 1000u);
}

TEST(ValidateProfileTest, ForeignBytesInANameAreEscapedAndCut) {
  ProfileDraft draft = SmallDraft();
  draft.operations[0].name = std::string("\xff\n\0", 3);
  draft.operations[1].name = draft.operations[0].name;
  draft.operations[2].name = std::string(400, 'a');
  draft.operations[3].name = draft.operations[2].name;
  const std::vector<Fault> faults = ValidateProfile(draft, {});
  ASSERT_THAT(Paths(faults), ElementsAre("operations[1].name", "operations[3].name"));
  EXPECT_THAT(faults[0].description, HasSubstr(R"("\xff\n\x00" is already)"));
  EXPECT_THAT(faults[1].description, HasSubstr("\"" + std::string(64, 'a') + "...\" is already"));
}

// One change to any valid draft, and the one fault it must give.
TEST(ValidateProfileTest, OneMutationOfARandomDraftGivesExactlyItsFault) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    ProfileDraft draft = RandomDraft(seed);
    ASSERT_THAT(Paths(ValidateProfile(draft, {})), IsEmpty());
    Random random({seed, 1});
    const size_t at = random.Below(draft.operations.size());
    const size_t step = random.Below(draft.steps.size());
    Operation& operation = draft.operations[at];
    const std::string here = "operations[" + std::to_string(at) + "].";
    const std::string time = "[" + std::to_string(at) + "]";
    const std::string in_step = "steps[" + std::to_string(step) + "].";
    std::string expected;
    switch (seed % 8) {
      case 0:
        operation.waiting_for.push_back(static_cast<int32_t>(draft.operations.size()));
        expected = here + "waiting_for[" + std::to_string(operation.waiting_for.size() - 1) + "]";
        break;
      case 1:
        draft.steps[step].end_ns[at] = draft.steps[step].start_ns[at] - 1;
        expected = absl::StrCat(in_step, "end_ns", time);
        break;
      case 2:
        draft.steps[step].start_ns[at] = -1;
        expected = absl::StrCat(in_step, "start_ns", time);
        break;
      case 3:
        operation.size_bytes = IsTransfer(operation.resource) ? 0 : 1;
        expected = here + "size_bytes";
        break;
      case 4:
        operation.name = draft.operations[(at + 1) % draft.operations.size()].name;
        expected = "operations[" +
                   std::to_string(std::max(at, (at + 1) % draft.operations.size())) + "].name";
        break;
      case 5:
        operation.resource = Resource::kUnspecified;
        expected = here + "resource";
        break;
      case 6:
        draft.steps[step].start_ns.push_back(0);
        expected = in_step + "start_ns";
        break;
      default:
        operation.waiting_for.insert(operation.waiting_for.begin(), static_cast<int32_t>(at));
        expected = here + "waiting_for";
    }
    const std::vector<Fault> faults = ValidateProfile(draft, {});
    ASSERT_THAT(Paths(faults), ElementsAre(expected)) << Show(faults);
  }
}

TEST(ValidateProfileTest, GoldenAndRecordedProfilesAreValid) {
  const std::string data = std::string(STEPCAST_SOURCE_DIR) + "/tests/data/";
  const nlohmann::json cases = testing::ReadJsonFile(data + "golden/parameter_server.json");
  EXPECT_EQ(cases.size(), 80u);
  for (const nlohmann::json& golden : cases) {
    const std::vector<Fault> faults =
        ValidateProfile(testing::ProfileFromJson(golden.at("profile")), {});
    EXPECT_THAT(Paths(faults), IsEmpty()) << Show(faults);
  }
  for (const char* name : {"alexnet_64", "resnet50_16", "vgg11_128"}) {
    const ProfileDraft draft =
        testing::ProfileFromJson(testing::ReadJsonFile(data + "testbed/" + name + ".profile.json"));
    EXPECT_GT(draft.operations.size(), 10u);
    EXPECT_THAT(Paths(ValidateProfile(draft, {})), IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace stepcast::validate_profile_test
