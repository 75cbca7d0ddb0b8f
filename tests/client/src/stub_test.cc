#include "client/src/stub.h"

#include <gmock/gmock.h>
#include <grpcpp/server_context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "stepcast/client.h"
#include "stepcast/error_details.h"
#include "tests/client/support/fake_service.h"
#include "tests/client/support/text_proto.h"
#include "tests/support/eventually.h"

namespace stepcast::client::stub_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Over a real socket, with the defaults of a user.
class GrpcStubTest : public testing::Test {
 protected:
  Client MakeClient() const { return Client({.server = service_.address(), .timeout = kHang}); }

  FakeService service_;
};

v1::GetProfileRequest Named(const std::string& name) {
  v1::GetProfileRequest request;
  request.set_name(name);
  return request;
}

v1::UploadProfileRequest::Header Binary() {
  return Proto<v1::UploadProfileRequest::Header>("encoding: BINARY");
}

v1::GenerateTraceRequest Trace() {
  return Proto<v1::GenerateTraceRequest>(R"pb(profile: "profiles/a")pb");
}

grpc::Status Refusal(grpc::StatusCode code, const google::protobuf::Message& detail) {
  google::rpc::Status status;
  status.add_details()->PackFrom(detail);
  return grpc::Status(code, "refused", status.SerializeAsString());
}

TEST_F(GrpcStubTest, AnUploadIsAHeaderAndThenAllItsBytesInChunks) {
  std::string bytes(3'000'001, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  service_.upload = [&](const std::vector<v1::UploadProfileRequest>& messages, v1::Profile& reply) {
    EXPECT_EQ(messages.at(0).header().encoding(), v1::UploadProfileRequest::BINARY);
    std::string received;
    for (size_t i = 1; i < messages.size(); ++i) {
      EXPECT_FALSE(messages[i].has_header());
      EXPECT_LT(messages[i].chunk().size(), 1u << 20);
      received += messages[i].chunk();
    }
    EXPECT_TRUE(received == bytes);
    reply.set_name("profiles/x");
    return grpc::Status::OK;
  };
  const auto stored = MakeClient().UploadProfileBytes(bytes, Binary());
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->name(), "profiles/x");
}

TEST_F(GrpcStubTest, AServerThatRefusesInTheMiddleOfAnUploadIsHeard) {
  service_.read_max = 2;
  service_.upload = [](const std::vector<v1::UploadProfileRequest>&, v1::Profile&) {
    google::rpc::ErrorInfo info;
    info.set_reason("PROFILE_TOO_LARGE");
    return Refusal(grpc::StatusCode::INVALID_ARGUMENT, info);
  };
  std::string bytes;
  bytes.resize(20'000'000);
  const absl::Status status = MakeClient().UploadProfileBytes(bytes, Binary()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(GetErrorDetails(status).reason, "PROFILE_TOO_LARGE");
}

TEST_F(GrpcStubTest, AFullQueueIsAskedAgain) {
  std::atomic<int> calls = 0;
  service_.predict = [&](const v1::PredictThroughputRequest& request,
                         v1::PredictThroughputResponse& reply) {
    EXPECT_EQ(request.worker_counts_size(), 2);
    if (++calls == 1) {
      google::rpc::RetryInfo info;
      info.mutable_retry_delay()->set_nanos(1'000'000);
      return Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, info);
    }
    reply.set_seed(42);
    return grpc::Status::OK;
  };
  const auto reply = MakeClient().PredictThroughput(
      Proto<v1::PredictThroughputRequest>(R"pb(profile: "profiles/a"
                                               worker_counts: [ 1, 2 ])pb"));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->seed(), 42);
  EXPECT_EQ(calls, 2);
}

TEST_F(GrpcStubTest, ARepeatedUploadSendsTheSameAgain) {
  std::vector<std::vector<v1::UploadProfileRequest>> streams;
  service_.upload = [&](const std::vector<v1::UploadProfileRequest>& messages, v1::Profile&) {
    streams.push_back(messages);
    return streams.size() < 2 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down")
                              : grpc::Status::OK;
  };
  ASSERT_TRUE(MakeClient().UploadProfileBytes(std::string(1'000'000, 'x'), Binary()).ok());
  ASSERT_EQ(streams.size(), 2);
  ASSERT_EQ(streams[0].size(), streams[1].size());
  for (size_t i = 0; i < streams[0].size(); ++i)
    EXPECT_EQ(streams[0][i].SerializeAsString(), streams[1][i].SerializeAsString());
}

TEST_F(GrpcStubTest, AStreamIsHandedOnPieceByPieceThenItsStatus) {
  service_.trace = [](const grpc::ServerContext&, const v1::GenerateTraceRequest& request,
                      grpc::ServerWriter<v1::GenerateTraceResponse>& writer) {
    EXPECT_EQ(request.profile(), "profiles/a");
    v1::GenerateTraceResponse piece;
    for (const char* text : {"one", "two"}) {
      piece.set_chunk(text);
      EXPECT_TRUE(writer.Write(piece));
    }
    return grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "no more time");
  };
  std::vector<std::string> pieces;
  const auto take = [&pieces](std::string_view piece) {
    pieces.emplace_back(piece);
    return absl::OkStatus();
  };
  EXPECT_EQ(MakeClient().GenerateTrace(Trace(), take), absl::OutOfRangeError("no more time"));
  EXPECT_EQ(pieces, (std::vector<std::string>{"one", "two"}));
}

TEST_F(GrpcStubTest, AStreamThatIsRefusedIsCancelled) {
  service_.trace = [](const grpc::ServerContext&, const v1::GenerateTraceRequest&,
                      grpc::ServerWriter<v1::GenerateTraceResponse>& writer) {
    v1::GenerateTraceResponse piece;
    piece.set_chunk(std::string(60'000, 'x'));
    while (writer.Write(piece)) {
    }
    return grpc::Status::OK;
  };
  const auto refuse = [](std::string_view) { return absl::DataLossError("the disk is full"); };
  EXPECT_EQ(MakeClient().GenerateTrace(Trace(), refuse), absl::DataLossError("the disk is full"));
}

TEST_F(GrpcStubTest, RepliesOverFourMebibytesAreTaken) {
  service_.get = [](const grpc::ServerContext&, const v1::GetProfileRequest&, v1::Profile& reply) {
    reply.set_display_name(std::string(6'000'000, 'x'));
    return grpc::Status::OK;
  };
  const auto profile = MakeClient().GetProfile(Named("profiles/a"));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->display_name().size(), 6'000'000);
  const Client strict({.server = service_.address(), .max_reply_bytes = 1'000'000});
  EXPECT_TRUE(absl::IsResourceExhausted(strict.GetProfile(Named("profiles/a")).status()));
}

TEST_F(GrpcStubTest, TheServerSeesTheDeadline) {
  // Both bounds hold however long the call is under way. On the wire a timeout has few digits, and
  // is rounded up.
  const auto soonest = DeadlineIn(seconds(299));
  service_.get = [&](const grpc::ServerContext& context, const v1::GetProfileRequest&,
                     v1::Profile&) {
    EXPECT_GE(context.deadline(), soonest);
    EXPECT_LE(context.deadline(), DeadlineIn(seconds(310)));
    return grpc::Status::OK;
  };
  EXPECT_TRUE(MakeClient().GetProfile(Named("profiles/a"), {.timeout = seconds(300)}).ok());
}

TEST_F(GrpcStubTest, ATimeoutWithoutEndIsNone) {
  service_.get = [](const grpc::ServerContext&, const v1::GetProfileRequest&, v1::Profile&) {
    return grpc::Status::OK;
  };
  EXPECT_TRUE(MakeClient()
                  .GetProfile(Named("profiles/a"), {.timeout = std::chrono::nanoseconds::max()})
                  .ok());
}

TEST_F(GrpcStubTest, TimeThatHasRunOutIsDeadlineExceeded) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      MakeClient().GetProfile({}, {.timeout = std::chrono::nanoseconds(0)}).status()));
}

TEST_F(GrpcStubTest, NobodyThereIsUnavailable) {
  std::string address;
  {
    const FakeService gone;
    address = gone.address();
  }
  const Client client(
      {.server = address, .retry = {.max_attempts = 2, .initial_backoff = milliseconds(1)}});
  EXPECT_TRUE(absl::IsUnavailable(client.GetProfile({}).status()));
}

TEST_F(GrpcStubTest, ThreadsShareOneClient) {
  service_.get = [](const grpc::ServerContext&, const v1::GetProfileRequest& request,
                    v1::Profile& reply) {
    reply.set_name(request.name());
    return grpc::Status::OK;
  };
  const Client client = MakeClient();
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([client, i] {
      for (int k = 0; k < 20; ++k) {
        const std::string name = "profiles/" + std::to_string(i * 100 + k);
        const auto profile = client.GetProfile(Named(name));
        ASSERT_TRUE(profile.ok()) << profile.status();
        EXPECT_EQ(profile->name(), name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace stepcast::client::stub_test
