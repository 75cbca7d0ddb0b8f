#include "stepcast/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/src/connection.h"

#include "stepcast/error_details.h"
#include "tests/client/support/temporary_directory.h"

namespace stepcast::client::client_test {
namespace {

class MockConnection : public Connection {
 public:
  MOCK_METHOD(absl::StatusOr<v1::Profile>, CreateProfile,
              (const v1::CreateProfileRequest&, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<v1::Profile>, UploadProfile,
              (const v1::UploadProfileRequest::Header&, std::string_view, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<v1::ImportProfileResponse>, ImportProfile,
              (const v1::ImportProfileRequest::Header&, const ImportStreams&, const Call&),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::Profile>, GetProfile, (const v1::GetProfileRequest&, const Call&),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::ListProfilesResponse>, ListProfiles,
              (const v1::ListProfilesRequest&, const Call&), (override));
  MOCK_METHOD(absl::Status, DeleteProfile, (const v1::DeleteProfileRequest&, const Call&),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::PredictThroughputResponse>, PredictThroughput,
              (const v1::PredictThroughputRequest&, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<v1::RecommendWorkersResponse>, RecommendWorkers,
              (const v1::RecommendWorkersRequest&, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<v1::OptimizeOrderResponse>, OptimizeOrder,
              (const v1::OptimizeOrderRequest&, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<v1::AllocateWorkersResponse>, AllocateWorkers,
              (const v1::AllocateWorkersRequest&, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<v1::CompareModelsResponse>, CompareModels,
              (const v1::CompareModelsRequest&, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<v1::FitParsingOverheadResponse>, FitParsingOverhead,
              (const v1::FitParsingOverheadRequest&, const Call&), (override));
  MOCK_METHOD(absl::Status, GenerateTrace,
              (const v1::GenerateTraceRequest&, TakeChunk, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<google::longrunning::Operation>, StartJob,
              (const v1::StartJobRequest&, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<google::longrunning::Operation>, GetOperation,
              (const google::longrunning::GetOperationRequest&, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<google::longrunning::ListOperationsResponse>, ListOperations,
              (const google::longrunning::ListOperationsRequest&, const Call&), (override));
  MOCK_METHOD(absl::StatusOr<google::longrunning::Operation>, AwaitOperation,
              (const std::string&, const Call&), (override));
  MOCK_METHOD(absl::Status, CancelOperation,
              (const google::longrunning::CancelOperationRequest&, const Call&), (override));
  MOCK_METHOD(absl::Status, DeleteOperation,
              (const google::longrunning::DeleteOperationRequest&, const Call&), (override));
};

class ClientTest : public testing::Test {
 protected:
  static v1::ListProfilesResponse Page(const std::vector<std::string>& names,
                                       const std::string& next) {
    v1::ListProfilesResponse page;
    for (const std::string& name : names) page.add_profiles()->set_name(name);
    page.set_next_page_token(next);
    return page;
  }

  std::shared_ptr<testing::StrictMock<MockConnection>> connection_ =
      std::make_shared<testing::StrictMock<MockConnection>>();
  Client client_{connection_, {}};
};

TEST_F(ClientTest, AllPagesAreReadWithTheSameFilter) {
  testing::InSequence in_order;
  for (const auto& [token, next] :
       std::vector<std::pair<std::string, std::string>>{{"", "p2"}, {"p2", "p3"}, {"p3", ""}}) {
    EXPECT_CALL(*connection_, ListProfiles)
        .WillOnce(
            [token = token, next = next](const v1::ListProfilesRequest& request,
                                         const Call&) -> absl::StatusOr<v1::ListProfilesResponse> {
              EXPECT_EQ(request.page_token(), token);
              EXPECT_EQ(request.filter(), "model = \"m\"");
              EXPECT_EQ(request.page_size(), 2);
              return Page({"profiles/" + token}, next);
            });
  }
  const auto profiles = client_.ListAllProfiles({.page_size = 2, .filter = "model = \"m\""});
  ASSERT_TRUE(profiles.ok()) << profiles.status();
  ASSERT_EQ(profiles->size(), 3);
  EXPECT_EQ((*profiles)[2].name, "profiles/p3");
}

TEST_F(ClientTest, MorePagesThanAllowedAreAnError) {
  int page = 0;
  EXPECT_CALL(*connection_, ListProfiles)
      .WillRepeatedly([&](const v1::ListProfilesRequest&, const Call&) {
        return absl::StatusOr<v1::ListProfilesResponse>(Page({"a", "b"}, std::to_string(++page)));
      });
  const absl::Status status = client_.ListAllProfiles({}, 5).status();
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_EQ(GetErrorDetails(status).reason, "TOO_MANY_PROFILES");
}

TEST_F(ClientTest, AServerThatRepeatsATokenDoesNotHoldUsForEver) {
  EXPECT_CALL(*connection_, ListProfiles)
      .Times(2)
      .WillRepeatedly([&](const v1::ListProfilesRequest&, const Call&) {
        return absl::StatusOr<v1::ListProfilesResponse>(Page({}, "again"));
      });
  EXPECT_TRUE(absl::IsInternal(client_.ListAllProfiles().status()));
}

TEST_F(ClientTest, AFailedPageFailsTheList) {
  EXPECT_CALL(*connection_, ListProfiles)
      .WillOnce(testing::Return(Page({"a"}, "p2")))
      .WillOnce(testing::Return(absl::InternalError("lost")));
  EXPECT_EQ(client_.ListAllProfiles().status(), absl::InternalError("lost"));
}

TEST_F(ClientTest, AnUploadSaysHowItsBytesAreToBeRead) {
  EXPECT_CALL(*connection_, UploadProfile)
      .WillOnce([](const v1::UploadProfileRequest::Header& header, std::string_view bytes,
                   const Call&) -> absl::StatusOr<v1::Profile> {
        EXPECT_EQ(header.encoding(), v1::UploadProfileRequest::JSON);
        EXPECT_EQ(header.profile_id(), "chosen");
        EXPECT_TRUE(header.validate_only());
        EXPECT_EQ(bytes, "{}");
        v1::Profile stored;
        stored.set_name("profiles/chosen");
        return stored;
      });
  const auto stored = client_.UploadProfileBytes("{}", ProfileEncoding::kUnspecified,
                                                 {.profile_id = "chosen", .validate_only = true});
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->name, "profiles/chosen");
}

TEST_F(ClientTest, AProfileIsUploadedInBinary) {
  EXPECT_CALL(*connection_, UploadProfile)
      .WillOnce([](const v1::UploadProfileRequest::Header& header, std::string_view bytes,
                   const Call&) -> absl::StatusOr<v1::Profile> {
        EXPECT_EQ(header.encoding(), v1::UploadProfileRequest::BINARY);
        v1::Profile sent;
        EXPECT_TRUE(sent.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
        EXPECT_EQ(sent.model(), "m");
        return sent;
      });
  EXPECT_TRUE(client_.UploadProfile({.model = "m"}).ok());
}

TEST_F(ClientTest, AFileThatIsNotThereIsNotUploaded) {
  EXPECT_TRUE(absl::IsNotFound(client_.UploadProfileFile("/nowhere").status()));
}

std::string All(ByteStream& stream) {
  std::string all;
  std::string block(3, '\0');
  while (const size_t read = stream.Read(block.data(), block.size()).value())
    all.append(block, 0, read);
  return all;
}

TEST_F(ClientTest, ImportsCarryTheirFormatAndOptions) {
  EXPECT_CALL(*connection_, ImportProfile)
      .WillOnce([](const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
                   const Call&) -> absl::StatusOr<v1::ImportProfileResponse> {
        EXPECT_EQ(header.layer_profile().batch_size(), 32);
        EXPECT_EQ(header.labels().at("k"), "v");
        EXPECT_EQ(All(streams.recording), "node1 -- Input");
        EXPECT_EQ(streams.graph, nullptr);
        v1::ImportProfileResponse response;
        response.add_notes("left out data loading");
        return response;
      })
      .WillOnce([](const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
                   const Call&) -> absl::StatusOr<v1::ImportProfileResponse> {
        EXPECT_EQ(header.model_zoo().model(), "vgg16");
        EXPECT_EQ(All(streams.recording), "");
        return v1::ImportProfileResponse();
      });
  const auto imported =
      client_.ImportLayerProfile("node1 -- Input", {.batch_size = 32}, {.labels = {{"k", "v"}}});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->notes, std::vector<std::string>{"left out data loading"});
  EXPECT_TRUE(client_.ImportZooModel({.model = "vgg16"}).ok());
}

TEST_F(ClientTest, RecordingsAreReadFromTheirFiles) {
  const TemporaryDirectory directory;
  const RecordingFiles files{.recording = directory.Write("steps.pb", "steps"),
                             .graph = directory.Write("graph.pb", "graph")};
  EXPECT_CALL(*connection_, ImportProfile)
      .WillOnce([](const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
                   const Call&) -> absl::StatusOr<v1::ImportProfileResponse> {
        EXPECT_EQ(header.run_metadata().batch_size(), 32);
        EXPECT_EQ(All(streams.recording), "steps");
        // A further attempt begins anew.
        EXPECT_TRUE(streams.recording.Rewind().ok());
        EXPECT_EQ(All(streams.recording), "steps");
        EXPECT_EQ(All(*streams.graph), "graph");
        return v1::ImportProfileResponse();
      })
      .WillOnce([](const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
                   const Call&) -> absl::StatusOr<v1::ImportProfileResponse> {
        EXPECT_EQ(header.timeline().variable_bytes().at("w"), 4);
        EXPECT_EQ(streams.graph, nullptr);
        return v1::ImportProfileResponse();
      });
  EXPECT_TRUE(client_.ImportRunMetadata(files, {.batch_size = 32}).ok());
  EXPECT_TRUE(
      client_.ImportTimeline({.recording = files.recording}, {.variable_bytes = {{"w", 4}}}).ok());
  EXPECT_TRUE(absl::IsNotFound(client_.ImportRunMetadata({.recording = "/nowhere"}, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(
      client_.ImportRunMetadata({.recording = files.recording, .graph = "/nowhere"}, {}).status()));
}

TEST_F(ClientTest, CopiesShareOneConnection) {
  {
    const Client copy = client_;  // NOLINT(performance-unnecessary-copy-initialization)
    EXPECT_CALL(*connection_, DeleteProfile).WillOnce(testing::Return(absl::OkStatus()));
    EXPECT_TRUE(copy.DeleteProfile({.name = "profiles/a"}).ok());
  }
  EXPECT_EQ(connection_.use_count(), 2);
}

}  // namespace
}  // namespace stepcast::client::client_test
