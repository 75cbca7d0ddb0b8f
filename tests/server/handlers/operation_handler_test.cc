#include "server/handlers/operation_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/handlers/listing.h"
#include "server/store/memory_stores.h"

namespace stepcast::server::operation_handler_test {
namespace {

constexpr char kUuid[] = "0b1c6f4e-6d0b-4c3e-9a57-2f1f0d3b7a11";

class OperationHandlerTest : public ::testing::Test {
 protected:
  std::string Start(const std::string& request_id = "", const std::string& owner = "") {
    clock_.Advance(1);
    const auto started = handler_.Start({.operation = {.method = "m",
                                                       .request_id = request_id,
                                                       .request_digest = "d",
                                                       .request = "r"},
                                         .faults = {}},
                                        owner);
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? "operations/" + started->record.id : "";
  }

  static std::vector<std::string> FieldsOf(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    std::vector<std::string> fields;
    for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
    return fields;
  }

  FakeClock clock_;
  MemoryOperationStore store_{{}, clock_};
  MemoryProfileStore profiles_{StoreLimits(), clock_};
  const OperationHandler handler_{store_, profiles_};
};

TEST_F(OperationHandlerTest, AStartKnowsItsOwnerAndARepetitionGivesTheResult) {
  const std::string name = Start(kUuid, "somebody");
  EXPECT_EQ(handler_.Get(name)->record.owner, "somebody");
  const ClaimedOperation claimed = **store_.Claim({.replica = "r", .lease_ns = 1});
  ASSERT_TRUE(
      store_.Finish({.id = claimed.record.id, .replica = "r", .number = 1}, {.bytes = "result"})
          .ok());
  const StartJobCall again{
      .operation = {.method = "m", .request_id = kUuid, .request_digest = "d", .request = "r"},
      .faults = {}};
  EXPECT_EQ(handler_.Start(again, "somebody")->result, "result");
}

TEST_F(OperationHandlerTest, AllFaultsOfAStartAreReportedAtOnce) {
  const StartJobCall call{.operation = {.request_id = "x"},
                          .faults = {{.field = "computation", .description = "missing"}}};
  EXPECT_THAT(FieldsOf(handler_.Start(call, "").status()),
              ::testing::ElementsAre("computation", "request_id"));
}

TEST_F(OperationHandlerTest, AboutAProfileThatIsNotThereNothingIsStarted) {
  StartJobCall call{
      .operation = {.method = "m", .request_id = kUuid, .request_digest = "d", .request = "r"},
      .profile = "profiles/mine",
      .faults = {}};
  const absl::Status refused = handler_.Start(call, "").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound) << refused;
  EXPECT_EQ(DetailsOf(refused).reason, "PROFILE_NOT_FOUND");
  EXPECT_TRUE(handler_.List({})->operations.empty());
  ASSERT_TRUE(profiles_.Put({.summary = {.id = "mine", .digest = "x"}, .content = "c"}, "").ok());
  const auto started = handler_.Start(call, "");
  ASSERT_TRUE(started.ok()) << started.status();
  // The operation goes on, and a repetition means the same one.
  ASSERT_TRUE(profiles_.Delete("mine", "").ok());
  const auto again = handler_.Start(call, "");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->record.id, started->record.id);
}

TEST_F(OperationHandlerTest, ANameThatIsNoneIsForTheComputationToRefuse) {
  const StartJobCall call{.operation = {.method = "m", .request_digest = "d", .request = "r"},
                          .profile = "No/Name",
                          .faults = {}};
  EXPECT_TRUE(handler_.Start(call, "").ok());
}

TEST_F(OperationHandlerTest, AllFaultsOfAListingAreReportedAtOnce) {
  EXPECT_THAT(
      FieldsOf(
          handler_.List({.name = "x", .filter = "y", .page_size = -1, .page_token = "z"}).status()),
      ::testing::ElementsAre("name", "filter", "page_size", "page_token"));
  EXPECT_THAT(FieldsOf(handler_.List({.page_token = MakePageToken("", "a-profile")}).status()),
              ::testing::ElementsAre("page_token"));
}

TEST_F(OperationHandlerTest, PagesFollowEachOther) {
  std::vector<std::string> names;
  names.reserve(60);
  for (int i = 0; i < 60; ++i) names.push_back(Start());
  std::vector<std::string> listed;
  ListOperationsCall call;
  do {
    const auto page = handler_.List(call);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const StoredOperation& operation : page->operations)
      listed.push_back("operations/" + operation.record.id);
    call.page_token = page->next_page_token;
    EXPECT_EQ(listed.size(), call.page_token.empty() ? 60 : OperationHandler::kDefaultPageSize);
  } while (!call.page_token.empty());
  EXPECT_EQ(listed, names);
}

TEST_F(OperationHandlerTest, AWaitIsBounded) {
  EXPECT_EQ(*OperationHandler::WaitSeconds({}), OperationHandler::kMaxWaitSeconds);
  EXPECT_EQ(*OperationHandler::WaitSeconds({.timeout_seconds = 1e9}),
            OperationHandler::kMaxWaitSeconds);
  EXPECT_EQ(*OperationHandler::WaitSeconds({.timeout_seconds = 0}), 0);
  EXPECT_THAT(FieldsOf(OperationHandler::WaitSeconds({.timeout_seconds = -0.5}).status()),
              ::testing::ElementsAre("timeout"));
}

TEST_F(OperationHandlerTest, CancelAndDeleteTakeNamesOfOperationsOnly) {
  const std::string name = Start();
  EXPECT_THAT(FieldsOf(handler_.Cancel("profiles/a")), ::testing::ElementsAre("name"));
  EXPECT_THAT(FieldsOf(handler_.Delete("")), ::testing::ElementsAre("name"));
  EXPECT_EQ(DetailsOf(handler_.Delete(name)).reason, "OPERATION_NOT_DONE");
  EXPECT_TRUE(handler_.Cancel(name).ok());
  EXPECT_TRUE(handler_.Delete(name).ok());
  EXPECT_EQ(DetailsOf(handler_.Get(name).status()).reason, "OPERATION_NOT_FOUND");
}

}  // namespace
}  // namespace stepcast::server::operation_handler_test
