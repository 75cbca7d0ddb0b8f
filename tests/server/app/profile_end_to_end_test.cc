// ProfileService's unary methods through the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/convert/profile_convert.h"
#include "tests/server/app/test_server.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::profile_end_to_end_test {
namespace {

using ::testing::ElementsAre;

TEST(ProfileEndToEndTest, AProfileGoesInAndComesOut) {
  TestServer server;
  const std::string name = server.Store(ToWire(RandomProfile(1)), "mine");
  EXPECT_EQ(name, "profiles/mine");
  grpc::ClientContext context;
  v1::GetProfileRequest request;
  request.set_name(name);
  v1::Profile reply;
  ASSERT_TRUE(server.profiles().GetProfile(&context, request, &reply).ok());
  EXPECT_TRUE(FromWire(reply).draft == RandomProfile(1));
  EXPECT_EQ(reply.digest().size(), 64U);
  EXPECT_FALSE(reply.etag().empty());
  EXPECT_TRUE(reply.has_create_time());
}

TEST(ProfileEndToEndTest, PagesAndDeletion) {
  TestServer server;
  for (uint64_t i = 0; i < 5; ++i)
    server.Store(ToWire(RandomProfile(i)), "id-" + std::to_string(i));
  v1::DeleteProfileRequest deletion;
  deletion.set_name("profiles/id-2");
  google::protobuf::Empty empty;
  grpc::ClientContext delete_context;
  ASSERT_TRUE(server.profiles().DeleteProfile(&delete_context, deletion, &empty).ok());
  std::vector<std::string> names;
  v1::ListProfilesRequest request;
  request.set_page_size(3);
  do {
    grpc::ClientContext context;
    v1::ListProfilesResponse reply;
    ASSERT_TRUE(server.profiles().ListProfiles(&context, request, &reply).ok());
    for (const v1::Profile& profile : reply.profiles()) names.push_back(profile.name());
    request.set_page_token(reply.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names,
              ElementsAre("profiles/id-0", "profiles/id-1", "profiles/id-3", "profiles/id-4"));
}

TEST(ProfileEndToEndTest, EachKindOfErrorHasItsDetails) {
  TestServer server;
  server.Store(ToWire(RandomProfile(1)), "mine");
  v1::CreateProfileRequest taken;
  *taken.mutable_profile() = ToWire(RandomProfile(2));
  taken.set_profile_id("mine");
  v1::Profile reply;
  {
    grpc::ClientContext context;
    const grpc::Status status = server.profiles().CreateProfile(&context, taken, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
    EXPECT_EQ(ReasonOf(status), "PROFILE_EXISTS");
    EXPECT_EQ(DetailOf<google::rpc::ResourceInfo>(status)->resource_name(), "profiles/mine");
  }
  {
    grpc::ClientContext context;
    v1::GetProfileRequest request;
    request.set_name("profiles/none");
    const grpc::Status status = server.profiles().GetProfile(&context, request, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(ReasonOf(status), "PROFILE_NOT_FOUND");
    EXPECT_EQ(DetailOf<google::rpc::ResourceInfo>(status)->resource_name(), "profiles/none");
  }
  {
    grpc::ClientContext context;
    v1::DeleteProfileRequest request;
    request.set_name("profiles/mine");
    request.set_etag("other");
    google::protobuf::Empty empty;
    const grpc::Status status = server.profiles().DeleteProfile(&context, request, &empty);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
    EXPECT_EQ(ReasonOf(status), "ETAG_MISMATCH");
  }
  {
    grpc::ClientContext context;
    v1::CreateProfileRequest request;
    *request.mutable_profile() = ToWire(SmallProfile());
    request.mutable_profile()->mutable_operations(1)->set_resource(
        static_cast<v1::Operation::Resource>(500));
    request.mutable_profile()->set_batch_size(-1);
    request.set_profile_id("Not An Id");
    const grpc::Status status = server.profiles().CreateProfile(&context, request, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(ReasonOf(status), "PROFILE_INVALID");
    EXPECT_THAT(FieldsOf(status),
                ElementsAre("profile_id", "profile.operations[1].resource", "profile.batch_size"));
  }
}

TEST(ProfileEndToEndTest, BytesThatAreNoMessageAreABadRequest) {
  TestServer server;
  for (const std::string& bytes :
       {std::string("\xFF\xFF\xFF"), std::string("\x0A\x05xx"), std::string(100'000, '\xAB')}) {
    const grpc::Status status = CallRaw(server, "/stepcast.v1.ProfileService/CreateProfile", bytes);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_EQ(ReasonOf(status), "REQUEST_MALFORMED");
  }
}

TEST(ProfileEndToEndTest, AMessageOverTheLimitIsRefusedByName) {
  ServerOptions options = TestOptions();
  options.max_message_bytes = 2000;
  TestServer server(options);
  v1::CreateProfileRequest request;
  request.mutable_profile()->set_model(std::string(2100, 'x'));
  grpc::ClientContext context;
  v1::Profile reply;
  const grpc::Status status = server.profiles().CreateProfile(&context, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "MESSAGE_TOO_LARGE");
  EXPECT_EQ(DetailOf<google::rpc::QuotaFailure>(status)->violations(0).subject(),
            "max_message_bytes");
}

TEST(ProfileEndToEndTest, RequestsUnderWayTogetherHaveALimit) {
  ServerOptions options = TestOptions();
  options.max_pending_bytes = 1024;
  TestServer server(options);
  v1::CreateProfileRequest request;
  request.mutable_profile()->set_model(std::string(2000, 'x'));
  grpc::ClientContext context;
  v1::Profile reply;
  const grpc::Status status = server.profiles().CreateProfile(&context, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(status), "MEMORY_EXHAUSTED");
  EXPECT_TRUE(DetailOf<google::rpc::RetryInfo>(status).has_value());
}

}  // namespace
}  // namespace stepcast::server::profile_end_to_end_test
