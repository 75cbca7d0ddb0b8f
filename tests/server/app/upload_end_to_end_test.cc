// UploadProfile and ImportProfile through the real server, whole and broken.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "server/convert/profile_convert.h"
#include "tests/server/app/test_server.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server {
namespace {

using ::testing::ElementsAre;
using Upload = v1::UploadProfileRequest;

Upload Header(const std::string& id = "", Upload::Encoding encoding = Upload::BINARY) {
  Upload message;
  message.mutable_header()->set_profile_id(id);
  message.mutable_header()->set_encoding(encoding);
  return message;
}

Upload Chunk(const std::string& bytes) {
  Upload message;
  message.set_chunk(bytes);
  return message;
}

grpc::Status Send(TestServer& server, const std::vector<Upload>& messages, v1::Profile* reply = nullptr) {
  grpc::ClientContext context;
  v1::Profile ignored;
  auto writer = server.profiles().UploadProfile(&context, reply == nullptr ? &ignored : reply);
  for (const Upload& message : messages) {
    if (!writer->Write(message)) break;
  }
  writer->WritesDone();
  return writer->Finish();
}

int StoredCount(TestServer& server) {
  grpc::ClientContext context;
  v1::ListProfilesResponse reply;
  EXPECT_TRUE(server.profiles().ListProfiles(&context, v1::ListProfilesRequest(), &reply).ok());
  return reply.profiles_size();
}

TEST(UploadEndToEndTest, AnUploadInPiecesIsOneProfileInEveryEncoding) {
  TestServer server;
  const v1::Profile profile = ToWire(RandomProfile(1));
  std::string json;
  std::string text;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(profile, &json).ok());
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(profile, &text));
  const std::vector<std::pair<Upload::Encoding, std::string>> encodings{
      {Upload::BINARY, profile.SerializeAsString()}, {Upload::JSON, json}, {Upload::TEXT, text}};
  std::vector<std::string> digests;
  for (const auto& [encoding, bytes] : encodings) {
    std::vector<Upload> messages{Header("", encoding)};
    for (size_t at = 0; at < bytes.size(); at += 7) messages.push_back(Chunk(bytes.substr(at, 7)));
    v1::Profile reply;
    const grpc::Status status = Send(server, messages, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    digests.push_back(reply.digest());
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0], digests[2]);
  EXPECT_EQ(StoredCount(server), 1);
}

TEST(UploadEndToEndTest, TheHeaderComesFirstAndOnce) {
  TestServer server;
  const std::string bytes = ToWire(RandomProfile(1)).SerializeAsString();
  const std::vector<std::vector<Upload>> streams{{}, {Chunk(bytes)}, {Chunk(bytes), Header()}, {Header(), Header(), Chunk(bytes)}, {Upload()}};
  for (size_t i = 0; i < streams.size(); ++i) {
    const grpc::Status status = Send(server, streams[i]);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << i;
    EXPECT_EQ(ReasonOf(status), "REQUEST_INVALID") << i;
    EXPECT_THAT(FieldsOf(status), ElementsAre("header")) << i;
  }
  EXPECT_THAT(FieldsOf(Send(server, {Header(), Upload()})), ElementsAre("content"));
  EXPECT_EQ(StoredCount(server), 0);
}

TEST(UploadEndToEndTest, AHeaderWithoutBytesIsNoProfile) {
  TestServer server;
  EXPECT_EQ(ReasonOf(Send(server, {Header()})), "PROFILE_MALFORMED");
}

TEST(UploadEndToEndTest, TooManyBytesAreRefusedByName) {
  ServerOptions options = TestOptions();
  options.max_profile_bytes = 1000;
  TestServer server(options);
  const grpc::Status status = Send(server, {Header(), Chunk(std::string(600, 'x')), Chunk(std::string(401, 'x'))});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "PROFILE_TOO_LARGE");
  EXPECT_THAT(FieldsOf(status), ElementsAre("chunk"));
  EXPECT_EQ(DetailOf<google::rpc::QuotaFailure>(status)->violations(0).subject(), "max_profile_bytes");
}

TEST(UploadEndToEndTest, AWrongStreamDoesNotKeepItsShareOfTheMemory) {
  ServerOptions options = TestOptions();
  options.max_pending_bytes = 5000;
  TestServer server(options);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ReasonOf(Send(server, {Header(), Chunk(std::string(4000, '\xFF'))})), "PROFILE_MALFORMED") << i;
  EXPECT_EQ(ReasonOf(Send(server, {Header(), Chunk(std::string(3000, 'x')), Chunk(std::string(3000, 'x'))})), "MEMORY_EXHAUSTED");
}

// A valid profile has been sent whole when the stream breaks: only the caller's own end of the stream makes it one.
TEST(UploadEndToEndTest, ABrokenStreamLeavesNothingBehind) {
  TestServer server;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const std::string bytes = ToWire(RandomProfile(static_cast<uint64_t>(round))).SerializeAsString();
    grpc::ClientContext context;
    v1::Profile reply;
    auto writer = server.profiles().UploadProfile(&context, &reply);
    ASSERT_TRUE(writer->Write(Header("round-" + std::to_string(round))));
    ASSERT_TRUE(writer->Write(Chunk(bytes)));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED) << "round " << round;
  }
  // Whatever the server still had to do for them is done before this is.
  server.Store(ToWire(SmallProfile()), "last");
  server.server().Drain();
  EXPECT_EQ(SampleOf(server, "stepcast_store_profiles"), "1");
}

TEST(UploadEndToEndTest, AnImportOfAZooModelNeedsNoBytes) {
  TestServer server;
  grpc::ClientContext context;
  v1::ImportProfileResponse reply;
  auto writer = server.profiles().ImportProfile(&context, &reply);
  v1::ImportProfileRequest message;
  message.mutable_header()->mutable_model_zoo()->set_model("alexnet");
  message.mutable_header()->mutable_model_zoo()->mutable_platform()->set_bandwidth_bytes_per_second(1e9);
  writer->Write(message);
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.profile().model(), "alexnet");
  EXPECT_EQ(StoredCount(server), 1);
}

TEST(UploadEndToEndTest, AnImportOfTextIsCheckedLineByLine) {
  TestServer server;
  grpc::ClientContext context;
  v1::ImportProfileResponse reply;
  auto writer = server.profiles().ImportProfile(&context, &reply);
  v1::ImportProfileRequest message;
  v1::LayerProfileOptions& options = *message.mutable_header()->mutable_layer_profile();
  options.set_model("m");
  options.set_batch_size(1);
  options.mutable_platform()->set_bandwidth_bytes_per_second(1e9);
  writer->Write(message);
  message.set_chunk("nonsense\n");
  writer->Write(message);
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "IMPORT_INVALID");
  EXPECT_EQ(FieldsOf(status).front(), "line 1");
}

}  // namespace
}  // namespace stepcast::server
