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
#include "tests/client/support/text_proto.h"

namespace stepcast::client::client_test {
namespace {

class MockConnection : public Connection {
 public:
  MOCK_METHOD(absl::Status, Call,
              (const Method&, const google::protobuf::Message&, google::protobuf::Message&,
               const CallTerms&),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::Profile>, UploadProfile,
              (const v1::UploadProfileRequest::Header&, std::string_view, const CallTerms&),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::ImportProfileResponse>, ImportProfile,
              (const v1::ImportProfileRequest::Header&, const ImportStreams&, const CallTerms&),
              (override));
  MOCK_METHOD(absl::Status, GenerateTrace,
              (const v1::GenerateTraceRequest&, TakeChunk, const CallTerms&), (override));
  MOCK_METHOD(absl::StatusOr<google::longrunning::Operation>, AwaitOperation,
              (const std::string&, const CallTerms&), (override));
};

// An answer to a call of ListProfiles; `request` is to have been it.
template <typename Answer>
auto List(const Answer& answer) {
  return [answer](const Method& method, const google::protobuf::Message& request,
                  google::protobuf::Message& response, const CallTerms&) -> absl::Status {
    EXPECT_EQ(method.path, MethodFor<v1::ListProfilesRequest>().path);
    return answer(static_cast<const v1::ListProfilesRequest&>(request),
                  static_cast<v1::ListProfilesResponse&>(response));
  };
}

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
    EXPECT_CALL(*connection_, Call)
        .WillOnce(List([token = token, next = next](const v1::ListProfilesRequest& request,
                                                    v1::ListProfilesResponse& response) {
          EXPECT_EQ(request.page_token(), token);
          EXPECT_EQ(request.filter(), "model = \"m\"");
          EXPECT_EQ(request.page_size(), 2);
          response = Page({"profiles/" + token}, next);
          return absl::OkStatus();
        }));
  }
  const auto all = client_.ListAllProfiles(
      Proto<v1::ListProfilesRequest>(R"pb(page_size: 2 filter: 'model = "m"')pb"));
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->profiles_size(), 3);
  EXPECT_EQ(all->profiles(2).name(), "profiles/p3");
  EXPECT_EQ(all->next_page_token(), "");
}

TEST_F(ClientTest, MorePagesThanAllowedAreAnError) {
  int page = 0;
  EXPECT_CALL(*connection_, Call)
      .WillRepeatedly(List([&](const v1::ListProfilesRequest&, v1::ListProfilesResponse& response) {
        response = Page({"a", "b"}, std::to_string(++page));
        return absl::OkStatus();
      }));
  const absl::Status status = client_.ListAllProfiles({}, 5).status();
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_EQ(GetErrorDetails(status).reason, "TOO_MANY_PROFILES");
}

TEST_F(ClientTest, AServerThatRepeatsATokenDoesNotHoldUsForEver) {
  EXPECT_CALL(*connection_, Call)
      .Times(2)
      .WillRepeatedly(List([](const v1::ListProfilesRequest&, v1::ListProfilesResponse& response) {
        response = Page({}, "again");
        return absl::OkStatus();
      }));
  EXPECT_TRUE(absl::IsInternal(client_.ListAllProfiles().status()));
}

TEST_F(ClientTest, AFailedPageFailsTheList) {
  EXPECT_CALL(*connection_, Call)
      .WillOnce(List([](const v1::ListProfilesRequest&, v1::ListProfilesResponse& response) {
        response = Page({"a"}, "p2");
        return absl::OkStatus();
      }))
      .WillOnce(testing::Return(absl::InternalError("lost")));
  EXPECT_EQ(client_.ListAllProfiles().status(), absl::InternalError("lost"));
}

TEST_F(ClientTest, AnUploadSaysHowItsBytesAreToBeRead) {
  EXPECT_CALL(*connection_, UploadProfile)
      .WillOnce([](const v1::UploadProfileRequest::Header& header, std::string_view bytes,
                   const CallTerms&) -> absl::StatusOr<v1::Profile> {
        EXPECT_EQ(header.encoding(), v1::UploadProfileRequest::JSON);
        EXPECT_EQ(header.profile_id(), "chosen");
        EXPECT_TRUE(header.validate_only());
        EXPECT_EQ(bytes, "{}");
        v1::Profile stored;
        stored.set_name("profiles/chosen");
        return stored;
      });
  const auto stored = client_.UploadProfileBytes(
      "{}",
      Proto<v1::UploadProfileRequest::Header>(R"pb(profile_id: "chosen" validate_only: true)pb"));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->name(), "profiles/chosen");
}

TEST_F(ClientTest, AProfileIsUploadedInBinary) {
  EXPECT_CALL(*connection_, UploadProfile)
      .WillOnce([](const v1::UploadProfileRequest::Header& header, std::string_view bytes,
                   const CallTerms&) -> absl::StatusOr<v1::Profile> {
        EXPECT_EQ(header.encoding(), v1::UploadProfileRequest::BINARY);
        v1::Profile sent;
        EXPECT_TRUE(sent.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
        EXPECT_EQ(sent.model(), "m");
        return sent;
      });
  EXPECT_TRUE(client_.UploadProfile(Proto<v1::Profile>(R"pb(model: "m")pb")).ok());
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
                   const CallTerms&) -> absl::StatusOr<v1::ImportProfileResponse> {
        EXPECT_EQ(header.layer_profile().batch_size(), 32);
        EXPECT_EQ(header.labels().at("k"), "v");
        EXPECT_EQ(All(streams.recording), "node1 -- Input");
        EXPECT_EQ(streams.graph, nullptr);
        v1::ImportProfileResponse response;
        response.add_notes("left out data loading");
        return response;
      })
      .WillOnce([](const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
                   const CallTerms&) -> absl::StatusOr<v1::ImportProfileResponse> {
        EXPECT_EQ(header.model_zoo().model(), "vgg16");
        EXPECT_EQ(All(streams.recording), "");
        return v1::ImportProfileResponse();
      });
  const auto imported = client_.ImportProfile(Proto<v1::ImportProfileRequest::Header>(R"pb(
                                                labels { key: "k" value: "v" }
                                                layer_profile { batch_size: 32 })pb"),
                                              "node1 -- Input");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->notes(), testing::ElementsAre("left out data loading"));
  EXPECT_TRUE(client_
                  .ImportProfile(Proto<v1::ImportProfileRequest::Header>(R"pb(model_zoo {
                                                                                model: "vgg16"
                                                                              })pb"))
                  .ok());
}

TEST_F(ClientTest, RecordingsAreReadFromTheirFiles) {
  const TemporaryDirectory directory;
  const RecordingFiles files{.recording = directory.Write("steps.pb", "steps"),
                             .graph = directory.Write("graph.pb", "graph")};
  const auto recorded =
      Proto<v1::ImportProfileRequest::Header>(R"pb(run_metadata { batch_size: 32 })pb");
  const auto timeline = Proto<v1::ImportProfileRequest::Header>(
      R"pb(timeline { variable_bytes { key: "w" value: 4 } })pb");
  EXPECT_CALL(*connection_, ImportProfile)
      .WillOnce([](const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
                   const CallTerms&) -> absl::StatusOr<v1::ImportProfileResponse> {
        EXPECT_EQ(header.run_metadata().batch_size(), 32);
        EXPECT_EQ(All(streams.recording), "steps");
        // A further attempt begins anew.
        EXPECT_TRUE(streams.recording.Rewind().ok());
        EXPECT_EQ(All(streams.recording), "steps");
        EXPECT_EQ(All(*streams.graph), "graph");
        return v1::ImportProfileResponse();
      })
      .WillOnce([](const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
                   const CallTerms&) -> absl::StatusOr<v1::ImportProfileResponse> {
        EXPECT_EQ(header.timeline().variable_bytes().at("w"), 4);
        EXPECT_EQ(streams.graph, nullptr);
        return v1::ImportProfileResponse();
      });
  EXPECT_TRUE(client_.ImportProfileFiles(recorded, files).ok());
  EXPECT_TRUE(client_.ImportProfileFiles(timeline, {.recording = files.recording}).ok());
  EXPECT_TRUE(
      absl::IsNotFound(client_.ImportProfileFiles(recorded, {.recording = "/nowhere"}).status()));
  EXPECT_TRUE(absl::IsNotFound(
      client_.ImportProfileFiles(recorded, {.recording = files.recording, .graph = "/nowhere"})
          .status()));
}

TEST_F(ClientTest, CopiesShareOneConnection) {
  {
    const Client copy = client_;  // NOLINT(performance-unnecessary-copy-initialization)
    EXPECT_CALL(*connection_, Call).WillOnce(testing::Return(absl::OkStatus()));
    EXPECT_TRUE(copy.DeleteProfile({}).ok());
  }
  EXPECT_EQ(connection_.use_count(), 2);
}

}  // namespace
}  // namespace stepcast::client::client_test
