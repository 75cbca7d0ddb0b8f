#include "server/handlers/profile_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "server/convert/profile_codec.h"
#include "server/store/memory_stores.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::profile_handler_test {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

class ProfileHandlerTest : public ::testing::Test {
 protected:
  absl::StatusOr<ProfileAnswer> Create(ProfileDraft draft, ProfilePlacement placement = {}) {
    return handler_.Create(
        {.placement = std::move(placement), .profile = ProfileInput{.draft = std::move(draft)}},
        NeverStop);
  }
  absl::StatusOr<ImportProfileAnswer> Import(const ImportProfileCall& call, std::string_view bytes,
                                             StopCheck stop = NeverStop) {
    TextSource source(bytes);
    return handler_.Import(call, {.recording = source}, stop);
  }
  size_t StoredCount() { return store_.List({.limit = 1000})->profiles.size(); }
  static std::vector<std::string> Fields(const absl::Status& status) {
    std::vector<std::string> fields;
    for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
    return fields;
  }

  FakeClock clock_;
  MemoryProfileStore store_{StoreLimits(), clock_};
  ProfileHandler handler_{store_, ProfileLimits()};
};

TEST_F(ProfileHandlerTest, TheSameContentIsTheSameProfile) {
  const absl::StatusOr<ProfileAnswer> first = Create(RandomProfile(1));
  ProfileDraft relabelled = RandomProfile(1);
  relabelled.labels = {{"other", "label"}};
  relabelled.display_name = "other";
  const absl::StatusOr<ProfileAnswer> second = Create(relabelled);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(first->summary.id, StartsWith("p-"));
  EXPECT_TRUE(first->summary == second->summary) << "the first one's labels stay";
  EXPECT_EQ(StoredCount(), 1U);
}

TEST_F(ProfileHandlerTest, AnAnswerSaysWhatWasStored) {
  const ProfileDraft draft = RandomProfile(2);
  const absl::StatusOr<ProfileAnswer> answer = Create(draft, {.profile_id = "mine"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const ProfileSummary& summary = answer->summary;
  EXPECT_EQ(summary.id, "mine");
  EXPECT_EQ(summary.digest, DigestOf(*Profile::Create(draft)));
  EXPECT_EQ(summary.display_name, draft.display_name);
  EXPECT_EQ(summary.model, draft.model);
  EXPECT_EQ(summary.framework, draft.framework);
  EXPECT_EQ(summary.labels, draft.labels);
  EXPECT_EQ(summary.batch_size, draft.batch_size);
  EXPECT_EQ(summary.parameter_servers, draft.parameter_servers);
  EXPECT_EQ(static_cast<size_t>(summary.operation_count), draft.operations.size());
  EXPECT_EQ(static_cast<size_t>(summary.step_count), draft.steps.size());
  EXPECT_EQ(static_cast<size_t>(summary.size_bytes),
            EncodeProfile(*Profile::Create(draft)).content.size());
  EXPECT_EQ(summary.create_time_ns, clock_.WallNs());
  EXPECT_FALSE(summary.etag.empty());
}

TEST_F(ProfileHandlerTest, AProfileBelongsToItsCallerWhicheverWayItComes) {
  EXPECT_EQ(Create(RandomProfile(1), {.profile_id = "created", .owner = "anna"})->summary.owner,
            "anna");
  const std::string bytes = EncodeProfile(*Profile::Create(RandomProfile(2))).content;
  const auto uploaded =
      handler_.Upload({.placement = {.profile_id = "uploaded", .owner = "bert"}}, bytes, NeverStop);
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  const ZooImport alexnet{.model = "alexnet",
                          .options = {.platform = {.bandwidth_bytes_per_second = 1e9}}};
  const auto imported =
      Import({.placement = {.profile_id = "imported", .owner = "carl"}, .format = alexnet}, "");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(store_.GetSummary("created")->owner, "anna");
  EXPECT_EQ(store_.GetSummary("uploaded")->owner, "bert");
  EXPECT_EQ(store_.GetSummary("imported")->owner, "carl");
}

ImportProfileCall Zoo(const std::string& model, double bandwidth = 1e9,
                      const std::string& request_id = "") {
  return {.placement = {.request_id = request_id},
          .format = ZooImport{.model = model,
                              .options = {.platform = {.bandwidth_bytes_per_second = bandwidth}}}};
}

TEST_F(ProfileHandlerTest, AModelOfTheZooHasItsOwnNameWhereThatIsFree) {
  EXPECT_EQ(Import(Zoo("alexnet"), "")->profile.summary.id, "alexnet");
  EXPECT_EQ(Import(Zoo("inception_v3"), "")->profile.summary.id, "inception-v3")
      << "as far as an id can say it";
  EXPECT_EQ(Import(Zoo("alexnet"), "")->profile.summary.id, "alexnet")
      << "the same content is the same profile";
  ImportProfileCall checked = Zoo("alexnet", 2e9);
  checked.placement.validate_only = true;
  const std::string would_be = Import(checked, "")->profile.summary.id;
  const std::string other = Import(Zoo("alexnet", 2e9), "")->profile.summary.id;
  EXPECT_THAT(other, StartsWith("p-")) << "the name is taken by other content";
  EXPECT_EQ(would_be, other);
  EXPECT_EQ(StoredCount(), 3U);
  // It stays where it is, also once the name is free.
  ASSERT_TRUE(handler_.Delete({.name = "profiles/alexnet"}).ok());
  EXPECT_EQ(Import(Zoo("alexnet", 2e9), "")->profile.summary.id, other);
}

TEST_F(ProfileHandlerTest, AModelOfAnAllReduceJobHasANameOfItsOwn) {
  ImportProfileCall call = Zoo("resnet50");
  std::get<ZooImport>(call.format).options.communication = ZooCommunication::kAllReduce;
  EXPECT_EQ(Import(call, "")->profile.summary.id, "resnet50-all-reduce");
  EXPECT_EQ(Import(Zoo("resnet50"), "")->profile.summary.id, "resnet50");
  EXPECT_EQ(Import(call, "")->profile.summary.id, "resnet50-all-reduce");
  EXPECT_TRUE(DecodeProfile(store_.Get("resnet50-all-reduce")->content)->has_collectives());
}

TEST_F(ProfileHandlerTest, FaultsOfAnImportsConversionAreSaidWithTheOthers) {
  ImportProfileCall call = Zoo("resnet51");
  call.faults = {{.field = "header.model_zoo.communication", .description = "9 is unknown"}};
  EXPECT_THAT(Fields(Import(call, "").status()),
              ElementsAre("header.model_zoo.communication", "header.model_zoo.model"));
  std::get<ZooImport>(call.format).model = "resnet50";
  EXPECT_THAT(Fields(Import(call, "").status()), ElementsAre("header.model_zoo.communication"));
  EXPECT_EQ(StoredCount(), 0U);
}

TEST_F(ProfileHandlerTest, ARepeatedImportIsTheFirstOneWhicheverIdThatGot) {
  const std::string request_id = "01234567-89ab-cdef-0123-456789abcdef";
  ASSERT_EQ(Import(Zoo("alexnet", 1e9), "")->profile.summary.id, "alexnet");
  const std::string other = Import(Zoo("alexnet", 2e9, request_id), "")->profile.summary.id;
  ASSERT_TRUE(handler_.Delete({.name = "profiles/" + other}).ok());
  ASSERT_TRUE(handler_.Delete({.name = "profiles/alexnet"}).ok());
  const auto again = Import(Zoo("alexnet", 2e9, request_id), "");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->profile.summary.id, other);
  EXPECT_EQ(StoredCount(), 0U) << "a late repetition does not bring back what was deleted";
  EXPECT_EQ(DetailsOf(Import(Zoo("alexnet", 3e9, request_id), "").status()).reason,
            "REQUEST_ID_REUSED");
}

TEST_F(ProfileHandlerTest, WhatIsNotThereIsToldWithWhatIsLikeIt) {
  ASSERT_TRUE(Import(Zoo("resnet50"), "").ok());
  for (const ProfileView view : {ProfileView::kBasic, ProfileView::kFull}) {
    const absl::Status status = handler_.Get({.name = "profiles/resnet5", .view = view}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(DetailsOf(status).metadata.at("similar"), "profiles/resnet50");
  }
  EXPECT_EQ(DetailsOf(handler_.Delete({.name = "profiles/resnet5"})).metadata.at("similar"),
            "profiles/resnet50");
}

TEST_F(ProfileHandlerTest, AnImportOfTheWrongKindSaysWhatItLooksLikeAndWhatIsRead) {
  const std::string pytorch =
      R"({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add"}]})";
  const RecordingOptions recording{.batch_size = 8,
                                   .platform = {.bandwidth_bytes_per_second = 1e9}};
  const LayerProfileOptions layers{.batch_size = 8,
                                   .platform = {.bandwidth_bytes_per_second = 1e9}};
  const TimelineOptions timeline{.recording = recording, .variable_bytes = {{"w", 4}}};
  for (const ImportProfileCall& call :
       {ImportProfileCall{.format = recording}, ImportProfileCall{.format = layers},
        ImportProfileCall{.format = timeline}}) {
    const absl::Status status = Import(call, pytorch).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << call.format.index();
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("looks like a trace of PyTorch's profiler"))
        << call.format.index();
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("run-metadata (TensorFlow's serialised RunMetadata)"))
        << call.format.index();
    EXPECT_EQ(DetailsOf(status).metadata.count("looks_like"), 1U);
  }
  const absl::Status broken =
      Import({.format = layers}, "node1 -- Conv -- nothing=here\n").status();
  EXPECT_FALSE(broken.ok());
  EXPECT_THAT(std::string(broken.message()), ::testing::Not(::testing::HasSubstr("looks like")))
      << "it is what it was said to be";
  const absl::Status uploaded =
      handler_.Upload({.encoding = ProfileEncoding::kJson}, pytorch, NeverStop).status();
  EXPECT_THAT(std::string(uploaded.message()),
              ::testing::HasSubstr("; it looks like a trace of PyTorch's profiler; what can be "));
}

TEST_F(ProfileHandlerTest, ATakenIdIsRefusedUnlessItHoldsTheSame) {
  ASSERT_TRUE(Create(RandomProfile(1), {.profile_id = "mine"}).ok());
  EXPECT_TRUE(Create(RandomProfile(1), {.profile_id = "mine"}).ok());
  for (const bool validate_only : {false, true}) {
    const absl::Status status =
        Create(RandomProfile(2), {.profile_id = "mine", .validate_only = validate_only}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(DetailsOf(status).reason, "PROFILE_EXISTS");
    EXPECT_EQ(DetailsOf(status).resource.name, "profiles/mine");
  }
}

TEST_F(ProfileHandlerTest, ARequestIdMakesARepetitionSafe) {
  const std::string request_id = "01234567-89ab-cdef-0123-456789abcdef";
  const absl::StatusOr<ProfileAnswer> first =
      Create(RandomProfile(1), {.profile_id = "mine", .request_id = request_id});
  const absl::StatusOr<ProfileAnswer> second =
      Create(RandomProfile(1), {.profile_id = "mine", .request_id = request_id});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(first->summary == second->summary);
  EXPECT_EQ(
      DetailsOf(Create(RandomProfile(2), {.profile_id = "mine", .request_id = request_id}).status())
          .reason,
      "REQUEST_ID_REUSED");
}

TEST_F(ProfileHandlerTest, ValidateOnlyChecksAndStoresNothing) {
  const absl::StatusOr<ProfileAnswer> answer = Create(RandomProfile(1), {.validate_only = true});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->summary.digest, DigestOf(*Profile::Create(RandomProfile(1))));
  EXPECT_EQ(StoredCount(), 0U);
  EXPECT_FALSE(Create({}, {.validate_only = true}).ok());
}

TEST_F(ProfileHandlerTest, EveryFaultIsReportedAtOnceWithItsPath) {
  ProfileDraft draft = SmallProfile();
  draft.batch_size = 0;
  draft.operations[1].waiting_for = {9};
  CreateProfileCall call{
      .placement = {.profile_id = "A", .request_id = "B"},
      .profile = ProfileInput{
          .draft = draft, .faults = {{.field = "operations[0].resource", .description = "77"}}}};
  const absl::Status status = handler_.Create(call, NeverStop).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).reason, "PROFILE_INVALID");
  EXPECT_THAT(Fields(status),
              ElementsAre("profile_id", "request_id", "profile.operations[0].resource",
                          "profile.batch_size", "profile.operations[1].waiting_for[0]"));
  EXPECT_EQ(StoredCount(), 0U);
}

TEST_F(ProfileHandlerTest, AProfileIsRequired) {
  EXPECT_THAT(Fields(handler_.Create({}, NeverStop).status()), ElementsAre("profile"));
}

TEST_F(ProfileHandlerTest, LimitsAreThoseOfTheServer) {
  const ProfileHandler strict(store_, {.max_operations = 1});
  const absl::Status status =
      strict.Create({.profile = ProfileInput{.draft = SmallProfile()}}, NeverStop).status();
  EXPECT_NE(status.message().find("max_operations"), absl::string_view::npos) << status;
}

TEST_F(ProfileHandlerTest, WhatACallerHasGivenUpOnLeavesNothingBehind) {
  const auto gone = [] { return absl::CancelledError("gone"); };
  const std::string bytes = EncodeProfile(*Profile::Create(RandomProfile(1))).content;
  const ImportProfileCall import{
      .format = ZooImport{.model = "alexnet",
                          .options = {.platform = {.bandwidth_bytes_per_second = 1e9}}}};
  EXPECT_EQ(
      handler_.Create({.profile = ProfileInput{.draft = RandomProfile(1)}}, gone).status().code(),
      absl::StatusCode::kCancelled);
  EXPECT_EQ(handler_.Upload({}, bytes, gone).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Import(import, "", gone).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(StoredCount(), 0U);
}

TEST_F(ProfileHandlerTest, AnUploadIsTheProfileOfItsBytes) {
  const std::string bytes = EncodeProfile(*Profile::Create(RandomProfile(1))).content;
  const absl::StatusOr<ProfileAnswer> answer =
      handler_.Upload({.placement = {.profile_id = "up"}}, bytes, NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(handler_.Get({.name = "profiles/up"})->content == RandomProfile(1));
}

TEST_F(ProfileHandlerTest, AnUploadsFaultsHaveTheProfilesPaths) {
  const absl::Status status =
      handler_
          .Upload({.placement = {.profile_id = "A"}, .encoding = ProfileEncoding::kJson},
                  R"({"operations": [{"name": "a"}]})", NeverStop)
          .status();
  const std::vector<std::string> fields = Fields(status);
  EXPECT_EQ(fields.front(), "header.profile_id");
  EXPECT_THAT(fields, ::testing::Contains("operations[0].resource"));
  EXPECT_EQ(StoredCount(), 0U);
}

TEST_F(ProfileHandlerTest, AnUnknownEncodingIsTheOnlyFaultOfItsBytes) {
  const absl::Status status =
      handler_
          .Upload({.faults = {{.field = "header.encoding", .description = "9"}}}, "\xFF", NeverStop)
          .status();
  EXPECT_THAT(Fields(status), ElementsAre("header.encoding"));
}

TEST_F(ProfileHandlerTest, TextThatIsNotUtf8IsRefusedBeforeItIsStored) {
  const std::string text =
      R"(model: "\377" batch_size: 1 platform { bandwidth_bytes_per_second: 1e9 }
                              operations { name: "o\377" resource: WORKER } steps { start_ns: 0 end_ns: 1 })";
  const absl::Status status =
      handler_.Upload({.encoding = ProfileEncoding::kText}, text, NeverStop).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(Fields(status), ElementsAre("model", "operations[0].name"));
  EXPECT_EQ(StoredCount(), 0U);
}

LayerProfileOptions LayerOptions() {
  return {.model = "tiny", .batch_size = 4, .platform = {.bandwidth_bytes_per_second = 1e9}};
}

RecordingOptions Recording() {
  return {.model = "rec", .batch_size = 2, .platform = {.bandwidth_bytes_per_second = 1e9}};
}

TEST_F(ProfileHandlerTest, FaultsOfATraceOfPyTorchAreAtTheRecordingOrItsOptions) {
  const PyTorchTraceOptions options{.recording = Recording(), .step_seconds = 0};
  const std::string trace = R"({"schemaVersion": 1, "traceEvents": []})";
  EXPECT_THAT(Fields(Import({.format = options}, trace).status()),
              ElementsAre("header.pytorch.step_seconds"));
  const absl::Status empty =
      Import({.format = PyTorchTraceOptions{.recording = Recording()}}, trace).status();
  EXPECT_THAT(Fields(empty), ElementsAre("recording"));
  EXPECT_THAT(std::string(empty.message()), ::testing::Not(::testing::HasSubstr("looks like")));
  EXPECT_THAT(
      std::string(Import({.format = PyTorchTraceOptions{.recording = Recording()}}, "node1 -- Conv")
                      .status()
                      .message()),
      ::testing::HasSubstr("looks like measured times of layers"));
}

TEST_F(ProfileHandlerTest, FaultsOfARecordingAreAtItAndThoseOfItsOptionsAtTheirFields) {
  EXPECT_THAT(Fields(Import({.format = Recording()}, "\x0a").status()), ElementsAre("recording"));
  EXPECT_THAT(Fields(Import({.format = RecordingOptions{.batch_size = 1}}, "").status()),
              ElementsAre("header.run_metadata.platform.bandwidth_bytes_per_second"));
  const std::string timeline =
      R"({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/job:localhost/task:0/cpu:0 Compute"}},
                                   {"ph": "X", "pid": 1, "ts": 5, "dur": 7, "args": {"name": "w", "op": "VariableV2"}}]})";
  EXPECT_THAT(
      Fields(Import({.format = TimelineOptions{.recording = Recording()}}, timeline).status()),
      ElementsAre("header.timeline.variable_bytes"));
  const absl::StatusOr<ImportProfileAnswer> sized =
      Import({.format = TimelineOptions{.recording = Recording(), .variable_bytes = {{"w", 4000}}}},
             timeline);
  ASSERT_TRUE(sized.ok()) << sized.status();
  EXPECT_EQ(sized->profile.summary.model, "rec");
}

TEST_F(ProfileHandlerTest, AGraphIsNotForLayersThatSailorDidNotWrite) {
  TextSource source("");
  TextSource graph("graph");
  EXPECT_THAT(Fields(handler_
                         .Import({.format = LayerOptions()}, {.recording = source, .graph = &graph},
                                 NeverStop)
                         .status()),
              ElementsAre("graph"));
}

TEST_F(ProfileHandlerTest, AnImportThatNobodyWaitsForIsStoppedWhileItIsRead) {
  int asked = 0;
  const auto gone = [&asked] {
    return ++asked > 3 ? absl::CancelledError("gone") : absl::OkStatus();
  };
  // A field that no reader knows, of ten mebibytes.
  const std::string bytes = std::string("\x7a\x80\x80\x80\x05", 5) + std::string(10 << 20, 'x');
  EXPECT_EQ(Import({.format = Recording()}, bytes, gone).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 4);
}

constexpr char kLayers[] =
    "node1 -- Input -- forward_compute_time=5, backward_compute_time=0, activation_size=0, "
    "parameter_size=0\n"
    "node2 -- Linear -- forward_compute_time=1.5, backward_compute_time=3, activation_size=8, "
    "parameter_size=4000\n"
    "\tnode1 -- node2\n";

TEST_F(ProfileHandlerTest, AnImportIsNamedAndLabelledAsItsHeaderSays) {
  const absl::StatusOr<ImportProfileAnswer> answer =
      Import({.display_name = "shown", .labels = {{"k", "v"}}, .format = LayerOptions()}, kLayers);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->profile.summary.display_name, "shown");
  EXPECT_EQ(answer->profile.summary.model, "tiny");
  EXPECT_EQ(answer->profile.summary.labels.at("k"), "v");
  EXPECT_FALSE(answer->profile.content.has_value());
  EXPECT_EQ(StoredCount(), 1U);
}

TEST_F(ProfileHandlerTest, AnImportWithoutADisplayNameHasItsModels) {
  EXPECT_EQ(Import({.format = LayerOptions()}, kLayers)->profile.summary.display_name, "tiny");
}

TEST_F(ProfileHandlerTest, AnImportThatIsOnlyCheckedShowsTheWholeProfile) {
  const absl::StatusOr<ImportProfileAnswer> answer =
      Import({.placement = {.validate_only = true}, .format = LayerOptions()}, kLayers);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->profile.content->operations.empty());
  EXPECT_EQ(StoredCount(), 0U);
}

TEST_F(ProfileHandlerTest, ImportFaultsAreAtLinesOrAtTheHeadersFields) {
  LayerProfileOptions options = LayerOptions();
  options.batch_size = 0;
  EXPECT_THAT(Fields(Import({.format = options}, kLayers).status()),
              ElementsAre("header.layer_profile.batch_size"));
  EXPECT_THAT(Fields(Import({.format = LayerOptions()}, "nonsense\n").status()).front(),
              StartsWith("line "));
  EXPECT_THAT(
      Fields(
          Import({.format = ZooImport{.model = "x",
                                      .options = {.platform = {.bandwidth_bytes_per_second = 1}}}},
                 "")
              .status()),
      ElementsAre("header.model_zoo.model"));
  EXPECT_THAT(Fields(Import({}, "").status()), ElementsAre("header.format"));
  EXPECT_THAT(Fields(Import({.format = ZooImport{.model = "vgg16"}}, "bytes").status()),
              ElementsAre("chunk"));
  EXPECT_THAT(
      Fields(Import({.display_name = std::string(1000, 'x'), .format = LayerOptions()}, kLayers)
                 .status()),
      ElementsAre("header.display_name"));
}

TEST_F(ProfileHandlerTest, GetShowsAsMuchAsItsViewSays) {
  ASSERT_TRUE(Create(RandomProfile(1), {.profile_id = "mine"}).ok());
  EXPECT_TRUE(handler_.Get({.name = "profiles/mine"})->content == RandomProfile(1));
  const absl::StatusOr<ProfileAnswer> basic =
      handler_.Get({.name = "profiles/mine", .view = ProfileView::kBasic});
  EXPECT_EQ(basic->summary.id, "mine");
  EXPECT_FALSE(basic->content.has_value());
}

TEST_F(ProfileHandlerTest, WhatIsNotThereIsNotFound) {
  for (const absl::Status& status :
       {handler_.Get({.name = "profiles/none"}).status(),
        handler_.Get({.name = "profiles/none", .view = ProfileView::kBasic}).status(),
        handler_.Delete({.name = "profiles/none"})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(DetailsOf(status).resource.name, "profiles/none");
  }
}

TEST_F(ProfileHandlerTest, ANameThatIsNoneIsAFaultWithAllOthers) {
  EXPECT_THAT(
      Fields(handler_.Get({.name = "none", .faults = {{.field = "view", .description = "9"}}})
                 .status()),
      ElementsAre("view", "name"));
  EXPECT_THAT(Fields(handler_.Delete({.name = "none"})), ElementsAre("name"));
}

TEST_F(ProfileHandlerTest, DeleteRemovesWhatStillHasItsEtag) {
  const std::string etag = Create(RandomProfile(1), {.profile_id = "mine"})->summary.etag;
  EXPECT_EQ(handler_.Delete({.name = "profiles/mine", .etag = "other"}).code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(handler_.Delete({.name = "profiles/mine", .etag = etag}).ok());
  EXPECT_EQ(StoredCount(), 0U);
}

TEST_F(ProfileHandlerTest, PagesTogetherAreTheWholeListInOrder) {
  std::vector<std::string> expected;
  for (uint64_t i = 0; i < 7; ++i) {
    expected.push_back("id-" + std::to_string(i));
    ASSERT_TRUE(Create(RandomProfile(i), {.profile_id = expected.back()}).ok());
  }
  std::vector<std::string> found;
  ListProfilesCall call{.page_size = 3};
  int pages = 0;
  do {
    const absl::StatusOr<ListProfilesAnswer> page = handler_.List(call);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const ProfileSummary& summary : page->profiles) found.push_back(summary.id);
    call.page_token = page->next_page_token;
    ++pages;
  } while (!call.page_token.empty());
  EXPECT_EQ(found, expected);
  EXPECT_EQ(pages, 3);
}

TEST_F(ProfileHandlerTest, AListTakesWhatItsFilterTakes) {
  for (uint64_t i = 0; i < 4; ++i) {
    ProfileDraft draft = SmallProfile();
    draft.batch_size = static_cast<int32_t>(i + 1);
    draft.model = i % 2 == 0 ? "even" : "odd";
    draft.labels = {{"n", std::to_string(i)}};
    ASSERT_TRUE(Create(draft, {.profile_id = "id-" + std::to_string(i)}).ok());
  }
  EXPECT_EQ(handler_.List({.filter = "model = even"})->profiles.size(), 2U);
  EXPECT_EQ(handler_.List({.filter = "model = even AND labels.n = \"2\""})->profiles.at(0).id,
            "id-2");
  EXPECT_TRUE(handler_.List({.filter = "labels:none"})->profiles.empty());
}

TEST_F(ProfileHandlerTest, EveryFaultOfAListIsReportedAtOnce) {
  const absl::Status status =
      handler_.List({.page_size = -1, .page_token = "?", .filter = "?", .view = ProfileView::kFull})
          .status();
  EXPECT_THAT(Fields(status), ElementsAre("page_size", "view", "filter", "page_token"));
}

TEST_F(ProfileHandlerTest, APageSizeOverTheMaximumIsCoerced) {
  ASSERT_TRUE(Create(RandomProfile(1)).ok());
  EXPECT_TRUE(handler_.List({.page_size = 1'000'000}).ok());
}

TEST_F(ProfileHandlerTest, APageFitsIntoAMessage) {
  constexpr size_t kProfiles = 400;
  for (size_t i = 0; i < kProfiles; ++i) {
    ProfileSummary summary{.id = "id-" + std::to_string(1000 + i), .digest = "d"};
    for (int label = 0; label < 64; ++label)
      summary.labels[std::string(60, 'k') + std::to_string(label)] = std::string(256, 'v');
    ASSERT_TRUE(store_.Put({.summary = summary, .content = "c"}, "").ok());
  }
  size_t found = 0;
  ListProfilesCall call{.page_size = 1000};
  do {
    const absl::StatusOr<ListProfilesAnswer> page = handler_.List(call);
    ASSERT_TRUE(page.ok()) << page.status();
    ASSERT_FALSE(page->profiles.empty());
    EXPECT_LT(page->profiles.size(), 200U);
    found += page->profiles.size();
    call.page_token = page->next_page_token;
  } while (!call.page_token.empty());
  EXPECT_EQ(found, kProfiles);
}

class UpdateProfileTest : public ProfileHandlerTest {
 protected:
  UpdateProfileTest() : first_(Create(RandomProfile(1), {.profile_id = "mine"})->summary) {}

  absl::StatusOr<ProfileAnswer> Update(ProfileDraft draft, std::vector<std::string> fields = {},
                                       std::string etag = "") {
    return handler_.Update({.name = "profiles/mine",
                            .etag = std::move(etag),
                            .profile = ProfileInput{.draft = std::move(draft)},
                            .fields = std::move(fields)},
                           NeverStop);
  }

  const ProfileSummary first_;
};

TEST_F(UpdateProfileTest, ReplacesTheWholeProfile) {
  ProfileDraft draft = RandomProfile(2);
  const absl::StatusOr<ProfileAnswer> answer = Update(draft, {}, first_.etag);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->summary.digest, DigestOf(*Profile::Create(draft)));
  EXPECT_EQ(*handler_.Get({.name = "profiles/mine"})->content, draft);
  EXPECT_EQ(StoredCount(), 1U);
  const absl::Status late = Update(RandomProfile(3), {}, first_.etag).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kAborted);
}

TEST_F(UpdateProfileTest, EveryFieldCanBeTakenAlone) {
  // Faults of what does not fit together are the profile's, at its path.
  ProfileDraft other = RandomProfile(1);
  other.display_name = "another";
  other.labels = {{"a", "b"}};
  other.batch_size += 1;
  ProfileDraft expected = RandomProfile(1);
  expected.labels = other.labels;
  ASSERT_TRUE(Update(other, {"labels"}).ok());
  EXPECT_EQ(*handler_.Get({.name = "profiles/mine"})->content, expected);
  expected.batch_size = other.batch_size;
  ASSERT_TRUE(Update(other, {"batch_size"}).ok());
  EXPECT_EQ(*handler_.Get({.name = "profiles/mine"})->content, expected);
  const absl::Status broken = Update(ProfileDraft{}, {"operations"}).status();
  EXPECT_EQ(broken.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Fields(broken).at(0), StartsWith("profile."));
  EXPECT_EQ(*handler_.Get({.name = "profiles/mine"})->content, expected);
}

TEST_F(UpdateProfileTest, EveryFaultOfTheRequestIsFound) {
  const absl::Status status = handler_
                                  .Update({.name = "mine",
                                           .placement = {.request_id = "r"},
                                           .profile = ProfileInput{},
                                           .faults = {{.field = "update_mask"}}},
                                          NeverStop)
                                  .status();
  EXPECT_THAT(Fields(status), ElementsAre("request_id", "update_mask", "profile.name"));
  EXPECT_THAT(Fields(handler_.Update({}, NeverStop).status()), ElementsAre("profile"));
}

TEST_F(UpdateProfileTest, WhatIsStoppedChangesNothing) {
  const absl::Status status =
      handler_
          .Update({.name = "profiles/mine", .profile = ProfileInput{.draft = RandomProfile(2)}},
                  [] { return absl::CancelledError(); })
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(*store_.GetSummary("mine"), first_);
}

}  // namespace
}  // namespace stepcast::server::profile_handler_test
