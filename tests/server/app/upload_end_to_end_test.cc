// UploadProfile and ImportProfile through the real server, whole and broken.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/convert/profile_convert.h"
#include "server/rpc/upload_content.h"
#include "tests/server/app/test_server.h"
#include "tests/server/support/random_profile.h"
#include "tests/support/run_metadata_writer.h"

namespace stepcast::server::upload_end_to_end_test {
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

grpc::Status Send(TestServer& server, const std::vector<Upload>& messages,
                  v1::Profile* reply = nullptr) {
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
  const std::vector<std::vector<Upload>> streams{
      {}, {Chunk(bytes)}, {Chunk(bytes), Header()}, {Header(), Header(), Chunk(bytes)}, {Upload()}};
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
  const grpc::Status status =
      Send(server, {Header(), Chunk(std::string(600, 'x')), Chunk(std::string(401, 'x'))});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "PROFILE_TOO_LARGE");
  EXPECT_THAT(FieldsOf(status), ElementsAre("chunk"));
  EXPECT_EQ(DetailOf<google::rpc::QuotaFailure>(status)->violations(0).subject(),
            "max_profile_bytes");
}

TEST(UploadEndToEndTest, AWrongStreamDoesNotKeepItsShareOfTheMemory) {
  ServerOptions options = TestOptions();
  options.max_pending_bytes = 5000;
  TestServer server(options);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(ReasonOf(Send(server, {Header(), Chunk(std::string(4000, '\xFF'))})),
              "PROFILE_MALFORMED")
        << i;
  EXPECT_EQ(ReasonOf(Send(
                server, {Header(), Chunk(std::string(3000, 'x')), Chunk(std::string(3000, 'x'))})),
            "MEMORY_EXHAUSTED");
}

// A valid profile has been sent whole when the stream breaks: only the caller's own end of the
// stream makes it one.
TEST(UploadEndToEndTest, ABrokenStreamLeavesNothingBehind) {
  TestServer server;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const std::string bytes =
        ToWire(RandomProfile(static_cast<uint64_t>(round))).SerializeAsString();
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
  message.mutable_header()->mutable_model_zoo()->mutable_platform()->set_bandwidth_bytes_per_second(
      1e9);
  writer->Write(message);
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.profile().model(), "alexnet");
  EXPECT_EQ(StoredCount(server), 1);
}

// A stream of ImportProfile and its end.
grpc::Status Import(TestServer& server, const std::vector<v1::ImportProfileRequest>& messages,
                    v1::ImportProfileResponse& reply) {
  grpc::ClientContext context;
  auto writer = server.profiles().ImportProfile(&context, &reply);
  for (const v1::ImportProfileRequest& message : messages) {
    if (!writer->Write(message)) break;
  }
  writer->WritesDone();
  return writer->Finish();
}

v1::ImportProfileRequest RecordingHeader() {
  v1::ImportProfileRequest message;
  v1::RunMetadataOptions& options = *message.mutable_header()->mutable_run_metadata();
  options.set_model("m");
  options.set_batch_size(8);
  options.mutable_platform()->set_bandwidth_bytes_per_second(1e8);
  return message;
}

// The bytes in messages of half a mebibyte.
void AddChunks(const std::string& bytes, bool graph,
               std::vector<v1::ImportProfileRequest>& messages) {
  constexpr size_t kChunkBytes = size_t{512} << 10;
  for (size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    v1::ImportProfileRequest& message = messages.emplace_back();
    (graph ? *message.mutable_graph_chunk() : *message.mutable_chunk()) =
        bytes.substr(at, kChunkBytes);
  }
}

Profile Recorded() {
  const std::vector<Operation> operations = {
      {.name = "recv/v", .resource = Resource::kDownlink, .size_bytes = 4000, .parameter = "v"},
      {.name = "compute", .resource = Resource::kWorker, .waiting_for = {0}},
      {.name = "send/v",
       .resource = Resource::kUplink,
       .size_bytes = 4000,
       .waiting_for = {1},
       .parameter = "v"},
      {.name = "update",
       .resource = Resource::kParameterServer,
       .waiting_for = {2},
       .parameter = "v"}};
  ProfileDraft draft{.model = "m",
                     .batch_size = 8,
                     .platform = {.bandwidth_bytes_per_second = 1e8},
                     .operations = operations};
  draft.steps = {
      {.start_ns = {0, 40'000, 50'000, 90'000}, .end_ns = {40'000, 50'000, 90'000, 95'000}}};
  return Profile::Create(std::move(draft)).value();
}

TEST(UploadEndToEndTest, ARecordingBeyondMemoryAndItsGraphMakeTheSameProfile) {
  TestServer server;
  const std::string step = stepcast::testing::WriteRunMetadata(
                               Recorded(), {.partition_graphs = false, .whole_graph = true})
                               .value();
  const std::string graph = stepcast::testing::WriteWholeGraph(Recorded()).value();
  for (const size_t steps : {size_t{1}, size_t{9'000}}) {
    std::string recording;
    for (size_t i = 0; i < steps; ++i) recording += step;
    EXPECT_EQ(recording.size() > Spool::kMemoryBytes, steps > 1);
    std::vector<v1::ImportProfileRequest> messages = {RecordingHeader()};
    AddChunks(graph, true, messages);
    AddChunks(recording, false, messages);
    v1::ImportProfileResponse reply;
    const grpc::Status status = Import(server, messages, reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(reply.profile().operation_count(), 4);
    EXPECT_EQ(reply.profile().step_count(), static_cast<int>(steps));
  }
}

TEST(UploadEndToEndTest, AnImportAboveItsLimitNamesIt) {
  ServerOptions options = TestOptions();
  options.max_import_bytes = 6 << 20;
  options.max_pending_bytes = 6 << 20;
  TestServer server(options);
  // A field that no reader knows, over and over, which is a recording of nothing.
  std::string nothing;
  while (nothing.size() < (size_t{5} << 20))
    nothing += std::string("\x7a\x40", 2) + std::string(64, 'x');
  std::vector<v1::ImportProfileRequest> messages = {RecordingHeader()};
  AddChunks(nothing, false, messages);
  v1::ImportProfileResponse reply;
  // Again and again, since what is in the file must not count as memory for ever.
  for (int round = 0; round < 5; ++round)
    EXPECT_EQ(ReasonOf(Import(server, messages, reply)), "IMPORT_INVALID") << round;
  AddChunks(nothing, false, messages);
  const grpc::Status status = Import(server, messages, reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "IMPORT_TOO_LARGE");
  EXPECT_EQ(DetailOf<google::rpc::QuotaFailure>(status)->violations(0).subject(),
            "max_import_bytes");
}

TEST(UploadEndToEndTest, AGraphAfterTheRecordingIsRefused) {
  TestServer server;
  std::vector<v1::ImportProfileRequest> messages = {RecordingHeader()};
  AddChunks("recording", false, messages);
  AddChunks("graph", true, messages);
  v1::ImportProfileResponse reply;
  EXPECT_THAT(FieldsOf(Import(server, messages, reply)), ElementsAre("graph_chunk"));
}

TEST(UploadEndToEndTest, ABrokenImportOfARecordingLeavesNothingBehind) {
  TestServer server;
  const std::string step = stepcast::testing::WriteRunMetadata(Recorded()).value();
  for (int round = 0; round < 50; ++round) {
    grpc::ClientContext context;
    v1::ImportProfileResponse reply;
    auto writer = server.profiles().ImportProfile(&context, &reply);
    ASSERT_TRUE(writer->Write(RecordingHeader()));
    v1::ImportProfileRequest chunk;
    chunk.set_chunk(step);
    ASSERT_TRUE(writer->Write(chunk));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED) << "round " << round;
  }
  server.Store(ToWire(SmallProfile()), "last");
  server.server().Drain();
  EXPECT_EQ(SampleOf(server, "stepcast_store_profiles"), "1");
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
}  // namespace stepcast::server::upload_end_to_end_test
