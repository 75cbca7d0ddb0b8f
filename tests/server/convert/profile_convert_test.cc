#include "server/convert/profile_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/server/support/random_profile.h"

namespace stepcast::server::profile_convert_test {
namespace {

TEST(ProfileConvertTest, CollectivesStreamsAndBucketsComeBackAsTheyWere) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "backward",
                       .resource = Resource::kWorker,
                       .stream = 63,
                       .kept_bytes = 5'000'000'000,
                       .pass = Pass::kBackwardWeight,
                       .output_bytes = 6'000'000'000}};
  draft.devices_per_worker = 32;
  for (const Collective kind : {Collective::kAllReduce, Collective::kReduceScatter,
                                Collective::kAllGather, Collective::kBroadcast}) {
    draft.operations.push_back({.name = absl::StrCat("collective ", static_cast<int>(kind)),
                                .resource = Resource::kCollective,
                                .size_bytes = 1000,
                                .waiting_for = {0},
                                .parameter = "w",
                                .collective = kind,
                                .group = kind == Collective::kBroadcast ? "tp" : ""});
  }
  draft.steps = {{.start_ns = {0, 5, 5, 5, 5}, .end_ns = {5, 5, 5, 5, 5}}};
  const std::vector<std::optional<RecordedBuckets>> recorded = {
      std::nullopt, RecordedBuckets{.sizes_bytes = {1000}},
      RecordedBuckets{.rule = Buckets{.first_bytes = 3, .cap_bytes = 4}},
      RecordedBuckets{.rule = Buckets{.cap_bytes = 4}}};
  for (const std::optional<RecordedBuckets>& buckets : recorded) {
    draft.buckets = buckets;
    const ProfileInput back = FromWire(ToWire(draft));
    EXPECT_TRUE(back.draft == draft);
    EXPECT_TRUE(Profile::Create(draft).ok());
  }
}

TEST(ProfileConvertTest, AProfileComesBackAsItWas) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const ProfileDraft draft = RandomProfile(seed);
    const ProfileInput back = FromWire(ToWire(draft));
    EXPECT_TRUE(back.draft == draft) << "seed " << seed;
    EXPECT_TRUE(back.faults.empty()) << "seed " << seed;
  }
}

TEST(ProfileConvertTest, ARecordingOfSeveralWorkersComesBackAsItWas) {
  ProfileDraft draft = RandomProfile(1);
  JobRecording& recording = draft.recording.emplace();
  recording.collectives = {{.kind = Collective::kAllReduce, .size_bytes = 4096},
                           {.kind = Collective::kBroadcast, .size_bytes = 0}};
  int64_t time = 1'000'000'000'000;
  for (const char* name : {"rank 0", "rank 1", "rank 2"}) {
    WorkerRecording& worker = recording.workers.emplace_back();
    worker.name = name;
    if (recording.workers.size() > 1) worker.steps = draft.steps;
    for (size_t step = 0; step < draft.steps.size(); ++step) {
      worker.step_begins_ns.push_back(++time);
      for (size_t i = 0; i < recording.collectives.size(); ++i) {
        const int64_t start = ++time;
        worker.runs.push_back({.start_ns = start, .end_ns = time += 10});
      }
      worker.step_ends_ns.push_back(++time);
      worker.server_shifts_ns.push_back(-time);
    }
  }
  EXPECT_TRUE(FromWire(ToWire(draft)).draft == draft);
  recording.overlap_slowdown = 1.25;
  recording.collective_slowdown = 1.75;
  recording.job_workers = 512;
  for (size_t i = 0; i < draft.steps.size() * recording.collectives.size(); ++i)
    recording.computing_ns.push_back(static_cast<int64_t>(i));
  EXPECT_TRUE(FromWire(ToWire(draft)).draft == draft);
}

TEST(ProfileConvertTest, NoParameterServersMeanOne) {
  EXPECT_EQ(FromWire(v1::Profile()).draft.parameter_servers, 1);
}

TEST(ProfileConvertTest, AnUnknownResourceIsAFaultAtItsOperation) {
  v1::Profile wire = ToWire(SmallProfile());
  wire.mutable_operations(1)->set_resource(static_cast<v1::Operation::Resource>(1000));
  const ProfileInput input = FromWire(wire);
  ASSERT_EQ(input.faults.size(), 1U);
  EXPECT_EQ(input.faults[0].field, "operations[1].resource");
  EXPECT_NE(input.faults[0].description.find("1000"), std::string::npos);
  EXPECT_EQ(input.draft.operations[1].resource, Resource::kUnspecified);
}

ProfileSummary Summary() {
  return {.id = "one",
          .digest = "d",
          .etag = "e",
          .display_name = "name",
          .model = "m",
          .framework = "f",
          .labels = {{"k", "v"}},
          .batch_size = 3,
          .parameter_servers = 2,
          .operation_count = 5,
          .step_count = 6,
          .size_bytes = 7,
          .create_time_ns = 8'000'000'009};
}

TEST(ProfileConvertTest, TheBasicViewHasWhatASummaryKnows) {
  const v1::Profile wire = ToWire(Summary());
  EXPECT_EQ(wire.name(), "profiles/one");
  EXPECT_EQ(wire.digest(), "d");
  EXPECT_EQ(wire.etag(), "e");
  EXPECT_EQ(wire.display_name(), "name");
  EXPECT_EQ(wire.model(), "m");
  EXPECT_EQ(wire.framework(), "f");
  EXPECT_EQ(wire.labels().at("k"), "v");
  EXPECT_EQ(wire.batch_size(), 3);
  EXPECT_EQ(wire.parameter_servers(), 2);
  EXPECT_EQ(wire.operation_count(), 5);
  EXPECT_EQ(wire.step_count(), 6);
  EXPECT_EQ(wire.size_bytes(), 7);
  EXPECT_EQ(wire.create_time().seconds(), 8);
  EXPECT_EQ(wire.create_time().nanos(), 9);
  EXPECT_EQ(wire.operations_size(), 0);
  EXPECT_FALSE(wire.has_platform());
}

TEST(ProfileConvertTest, TheFullViewHasTheContentToo) {
  const ProfileDraft draft = RandomProfile(1);
  const v1::Profile wire = ToWire(ProfileAnswer{.summary = Summary(), .content = draft});
  EXPECT_EQ(wire.name(), "profiles/one");
  EXPECT_EQ(static_cast<size_t>(wire.operations_size()), draft.operations.size());
  EXPECT_EQ(wire.platform().bandwidth_bytes_per_second(),
            draft.platform.bandwidth_bytes_per_second);
  EXPECT_EQ(wire.labels().size(), 1U) << "the stored labels, not the content's";
}

TEST(ProfileConvertTest, WhatWasNotStoredHasNoTime) {
  ProfileSummary summary = Summary();
  summary.create_time_ns = 0;
  EXPECT_FALSE(ToWire(summary).has_create_time());
}

TEST(ProfileServiceConvertTest, CreateCarriesPlacementAndProfile) {
  v1::CreateProfileRequest wire;
  EXPECT_FALSE(FromWire(wire).profile.has_value());
  *wire.mutable_profile() = ToWire(RandomProfile(1));
  wire.set_profile_id("id");
  wire.set_request_id("request");
  wire.set_validate_only(true);
  const CreateProfileCall call = FromWire(wire);
  EXPECT_TRUE(
      call.placement ==
      (ProfilePlacement{.profile_id = "id", .request_id = "request", .validate_only = true}));
  EXPECT_TRUE(call.profile->draft == RandomProfile(1));
}

TEST(ProfileServiceConvertTest, RequestIdsAreOfOneCase) {
  constexpr char kCapitals[] = "ABCDEF11-2222-4333-8444-555555555555";
  constexpr char kSmall[] = "abcdef11-2222-4333-8444-555555555555";
  const auto expect_small = [&](auto wire) {
    wire.set_request_id(kCapitals);
    EXPECT_EQ(FromWire(wire).placement.request_id, kSmall) << wire.GetTypeName();
  };
  expect_small(v1::CreateProfileRequest());
  expect_small(v1::UpdateProfileRequest());
  expect_small(v1::UploadProfileRequest::Header());
  expect_small(v1::ImportProfileRequest::Header());
}

TEST(ProfileServiceConvertTest, UploadsAreBinaryUnlessTheySayOtherwise) {
  v1::UploadProfileRequest::Header wire;
  EXPECT_EQ(FromWire(wire).encoding, ProfileEncoding::kBinary);
  wire.set_encoding(v1::UploadProfileRequest::TEXT);
  wire.set_profile_id("id");
  EXPECT_EQ(FromWire(wire).encoding, ProfileEncoding::kText);
  EXPECT_EQ(FromWire(wire).placement.profile_id, "id");
  wire.set_encoding(static_cast<v1::UploadProfileRequest::Encoding>(8));
  EXPECT_EQ(FromWire(wire).faults.at(0).field, "header.encoding");
}

TEST(ProfileServiceConvertTest, AnImportHasTheFormatThatIsSet) {
  v1::ImportProfileRequest::Header wire;
  EXPECT_TRUE(std::holds_alternative<std::monostate>(FromWire(wire).format));
  wire.set_display_name("name");
  (*wire.mutable_labels())["k"] = "v";
  v1::LayerProfileOptions& layers = *wire.mutable_layer_profile();
  layers.set_model("m");
  layers.set_batch_size(3);
  layers.mutable_platform()->set_bandwidth_bytes_per_second(4);
  layers.set_step_time_variation(0.25);
  layers.set_common_time_variation(0.125);
  layers.set_steps(5);
  layers.set_seed(6);
  const ImportProfileCall call = FromWire(wire);
  EXPECT_EQ(call.display_name, "name");
  EXPECT_EQ(call.labels.at("k"), "v");
  const auto& options = std::get<LayerProfileOptions>(call.format);
  EXPECT_EQ(options.model, "m");
  EXPECT_EQ(options.batch_size, 3);
  EXPECT_EQ(options.platform.bandwidth_bytes_per_second, 4);
  EXPECT_EQ(options.variation.own, 0.25);
  EXPECT_EQ(options.variation.common, 0.125);
  EXPECT_EQ(options.variation.steps, 5);
  EXPECT_EQ(options.variation.seed, 6U);
}

TEST(ProfileServiceConvertTest, AZooImportKeepsDefaultsForWhatIsUnset) {
  v1::ImportProfileRequest::Header wire;
  wire.mutable_model_zoo()->set_model("vgg16");
  const auto defaults = std::get<ZooImport>(FromWire(wire).format);
  EXPECT_EQ(defaults.model, "vgg16");
  EXPECT_EQ(defaults.options.batch_size, ZooOptions().batch_size);
  EXPECT_EQ(defaults.options.variation.own, std::nullopt);
  EXPECT_EQ(defaults.options.device_flops_per_second, ZooOptions().device_flops_per_second);
  wire.mutable_model_zoo()->set_batch_size(0);
  wire.mutable_model_zoo()->set_step_time_variation(0);
  wire.mutable_model_zoo()->set_device_flops_per_second(1e12);
  wire.mutable_model_zoo()->set_steps(7);
  const auto set = std::get<ZooImport>(FromWire(wire).format);
  EXPECT_EQ(set.options.variation.own, 0) << "0 was said: one step";
  EXPECT_EQ(set.options.batch_size, 0) << "0 was said, so it is the importer's to refuse";
  EXPECT_EQ(set.options.device_flops_per_second, 1e12);
  EXPECT_EQ(set.options.variation.steps, 7);
}

TEST(ProfileServiceConvertTest, AZooImportSaysHowWorkersMeet) {
  v1::ImportProfileRequest::Header wire;
  const auto communication = [&wire] {
    return std::get<ZooImport>(FromWire(wire).format).options.communication;
  };
  wire.mutable_model_zoo()->set_model("resnet50");
  EXPECT_EQ(communication(), ZooCommunication::kParameterServers);
  wire.mutable_model_zoo()->set_communication(v1::ModelZooOptions::ALL_REDUCE);
  EXPECT_EQ(communication(), ZooCommunication::kAllReduce);
  EXPECT_TRUE(FromWire(wire).faults.empty());
  wire.mutable_model_zoo()->set_communication(static_cast<v1::ModelZooOptions::Communication>(9));
  EXPECT_EQ(FromWire(wire).faults.at(0).field, "header.model_zoo.communication");
}

TEST(ProfileServiceConvertTest, ViewsHaveTheirDefaults) {
  EXPECT_EQ(FromWire(v1::GetProfileRequest()).view, ProfileView::kFull);
  EXPECT_EQ(FromWire(v1::ListProfilesRequest()).view, ProfileView::kBasic);
  v1::GetProfileRequest wire;
  wire.set_view(static_cast<v1::ProfileView>(9));
  EXPECT_EQ(FromWire(wire).faults.at(0).field, "view");
}

TEST(ProfileServiceConvertTest, ListAndDeleteCarryTheirFields) {
  v1::ListProfilesRequest list;
  list.set_page_size(-4);
  list.set_page_token("token");
  list.set_filter("filter");
  EXPECT_EQ(FromWire(list).page_size, -4);
  EXPECT_EQ(FromWire(list).page_token, "token");
  EXPECT_EQ(FromWire(list).filter, "filter");
  v1::DeleteProfileRequest wire;
  wire.set_name("n");
  wire.set_etag("e");
  EXPECT_EQ(FromWire(wire).name, "n");
  EXPECT_EQ(FromWire(wire).etag, "e");
}

TEST(ProfileServiceConvertTest, AnUpdateTakesWhatItsMaskSays) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  using ::testing::SizeIs;
  v1::UpdateProfileRequest wire;
  EXPECT_FALSE(FromWire(wire).profile.has_value());
  wire.mutable_profile()->set_name("n");
  wire.mutable_profile()->set_etag("e");
  wire.set_allow_missing(true);
  wire.set_validate_only(true);
  wire.set_request_id("r");
  const UpdateProfileCall nothing = FromWire(wire);
  EXPECT_EQ(nothing.faults.at(0).field, "profile");
  EXPECT_EQ(nothing.name + nothing.etag + nothing.placement.request_id, "ner");
  EXPECT_TRUE(nothing.allow_missing && nothing.placement.validate_only);
  (*wire.mutable_profile()->mutable_labels())["a"] = "b";
  EXPECT_THAT(FromWire(wire).fields, ElementsAre("labels"));
  // One field of the recording stands for all of them.
  wire.mutable_profile()->set_batch_size(1);
  EXPECT_THAT(FromWire(wire).fields,
              ElementsAre("model", "framework", "labels", "batch_size", "platform",
                          "parameter_servers", "operations", "steps", "buckets",
                          "device_idle_fraction", "recording", "devices_per_worker"));
  wire.mutable_update_mask()->add_paths("batch_size");
  wire.mutable_update_mask()->add_paths("create_time");
  EXPECT_THAT(FromWire(wire).fields, ElementsAre("batch_size"));
  wire.mutable_update_mask()->add_paths("labels.a");
  wire.mutable_update_mask()->add_paths("*");
  const UpdateProfileCall wrong = FromWire(wire);
  ASSERT_THAT(wrong.faults, SizeIs(2));
  EXPECT_EQ(wrong.faults[0].field, "update_mask.paths[2]");
  EXPECT_EQ(wrong.faults[1].field, "update_mask.paths[3]");
  wire.mutable_update_mask()->clear_paths();
  wire.mutable_update_mask()->add_paths("*");
  EXPECT_THAT(FromWire(wire).fields, IsEmpty());
  EXPECT_THAT(FromWire(wire).faults, IsEmpty());
  wire.mutable_update_mask()->set_paths(0, "etag");
  EXPECT_EQ(FromWire(wire).faults.at(0).field, "update_mask");
}

TEST(ProfileServiceConvertTest, OutputOnlyFieldsOfTheContractAreThoseThatNoUpdateTakes) {
  // Every other field is one that a draft has.
  v1::UpdateProfileRequest wire;
  const google::protobuf::Descriptor& type = *v1::Profile::descriptor();
  for (int i = 0; i < type.field_count(); ++i)
    wire.mutable_update_mask()->add_paths(type.field(i)->name());
  wire.mutable_profile();
  v1::Profile all = ToWire(ProfileDraft{.display_name = "d", .labels = {{"a", "b"}}});
  *wire.mutable_profile() = all;
  EXPECT_EQ(FromWire(wire).fields.size(), 13U);
}

TEST(ProfileServiceConvertTest, AnswersCarryProfilesNotesAndToken) {
  const v1::ListProfilesResponse list =
      ToWire(ListProfilesAnswer{.profiles = {{.id = "a"}, {.id = "b"}}, .next_page_token = "next"});
  ASSERT_EQ(list.profiles_size(), 2);
  EXPECT_EQ(list.profiles(1).name(), "profiles/b");
  EXPECT_EQ(list.next_page_token(), "next");
  const v1::ImportProfileResponse import =
      ToWire(ImportProfileAnswer{.profile = {.summary = {.id = "a"}}, .notes = {"one", "two"}});
  EXPECT_EQ(import.profile().name(), "profiles/a");
  EXPECT_EQ(import.notes(1), "two");
}

}  // namespace
}  // namespace stepcast::server::profile_convert_test
