#include "stepcast/adviser.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/connection.h"
#include "client/src/error_status.h"

#include "stepcast/error_details.h"

namespace stepcast::client::adviser_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

using Recommend =
    std::function<absl::Status(const v1::RecommendWorkersRequest&, v1::RecommendWorkersResponse&)>;

// A connection that answers as the test says, and holds calls while the test says so.
class FakeConnection : public Connection {
 public:
  absl::Status Call(const Method& method, const google::protobuf::Message& request,
                    google::protobuf::Message& response, const CallTerms& terms) override {
    std::unique_lock lock(mutex_);
    ++calls_;
    terms_ = terms;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !is_held_ || is_cancelled_; });
    if (is_cancelled_) return absl::CancelledError("cancelled");
    if (method.path == MethodFor<v1::PredictThroughputRequest>().path) {
      auto& reply = static_cast<v1::PredictThroughputResponse&>(response);
      reply.add_predictions()->mutable_scenario()->mutable_all_reduce();
      return absl::OkStatus();
    }
    return answer_(static_cast<const v1::RecommendWorkersRequest&>(request),
                   static_cast<v1::RecommendWorkersResponse&>(response));
  }
  void CancelCalls() override {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    changed_.notify_all();
  }

  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header&,
                                            std::string_view, const CallTerms&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(const v1::ImportProfileRequest::Header&,
                                                          const ImportStreams&,
                                                          const CallTerms&) override {
    return absl::UnimplementedError("");
  }
  absl::Status GenerateTrace(const v1::GenerateTraceRequest&, TakeChunk,
                             const CallTerms&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<google::longrunning::Operation> AwaitOperation(const std::string&,
                                                                const CallTerms&) override {
    return absl::UnimplementedError("");
  }

  void Hold(bool held) {
    const std::lock_guard lock(mutex_);
    is_held_ = held;
    changed_.notify_all();
  }
  void Answer(Recommend answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  void AwaitCalls(int calls) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_ >= calls; });
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  CallTerms terms() {
    const std::lock_guard lock(mutex_);
    return terms_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Recommend answer_;
  CallTerms terms_;
  int calls_ = 0;
  bool is_held_ = false;
  bool is_cancelled_ = false;
};

absl::Status AnswerFour(const v1::RecommendWorkersRequest&, v1::RecommendWorkersResponse& reply) {
  v1::Prediction& prediction = *reply.mutable_prediction();
  prediction.mutable_scenario()->set_workers(4);
  prediction.set_examples_per_second(400);
  prediction.mutable_confidence_interval()->set_lower(399);
  prediction.mutable_confidence_interval()->set_upper(401);
  prediction.set_scaling_efficiency(1);
  prediction.set_steady_state(true);
  *reply.add_frontier() = prediction;
  reply.set_workers(4);
  return absl::OkStatus();
}

Recommend Failing(absl::StatusCode code) {
  return [code](const auto&, auto&) { return absl::Status(code, "as the test says"); };
}

AdviceQuestion Question(const std::string& profile = "a") {
  AdviceQuestion question;
  question.profile = profile;
  return question;
}

// A day is as good as for ever, and no test waits for its end.
constexpr nanoseconds kLong = std::chrono::hours(24);

class AdviserTest : public testing::Test {
 protected:
  AdviserTest() { connection_->Answer(AnswerFour); }

  std::unique_ptr<Adviser> Make(AdviserOptions options) {
    return std::make_unique<Adviser>(connection_, options, [this] {
      const std::lock_guard lock(mutex_);
      return now_;
    });
  }
  std::unique_ptr<Adviser> Patient() { return Make({.wait = kLong}); }

  void Pass(nanoseconds time) {
    const std::lock_guard lock(mutex_);
    now_ += time;
  }

  absl::StatusCode CodeOf(Adviser& adviser, const std::string& profile) {
    return adviser.Advise(Question(profile)).status().code();
  }

  std::shared_ptr<FakeConnection> connection_ = std::make_shared<FakeConnection>();
  std::mutex mutex_;
  Adviser::Time now_{seconds(1000)};
};

TEST_F(AdviserTest, AnAnswerComesOnceAndFromMemoryThen) {
  const auto adviser = Patient();
  const auto advice = adviser->Advise(Question());
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->chosen.workers, 4);
  EXPECT_TRUE(adviser->Advise(Question()).ok());
  EXPECT_EQ(connection_->calls(), 1);
  EXPECT_EQ(adviser->counters().from_memory, 1);
  EXPECT_EQ(connection_->terms().timeout, seconds(30));
  EXPECT_EQ(connection_->terms().retry.max_attempts, 1);
  Pass(seconds(301));
  EXPECT_TRUE(adviser->Advise(Question()).ok());
  EXPECT_EQ(connection_->calls(), 2);
}

TEST_F(AdviserTest, ALateAnswerIsThereTheNextTime) {
  const auto adviser = Make({.wait = milliseconds(1)});
  connection_->Hold(true);
  const auto first = adviser->Advise(Question());
  EXPECT_EQ(first.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(GetErrorDetails(first.status()).reason, "ADVICE_NOT_YET");
  EXPECT_EQ(CodeOf(*adviser, "a"), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(adviser->counters().too_late, 2);
  connection_->Hold(false);
  absl::StatusOr<Advice> later;
  do later = adviser->Advise(Question());
  while (!later.ok());
  EXPECT_EQ(later->chosen.workers, 4);
  EXPECT_EQ(connection_->calls(), 1);
}

TEST_F(AdviserTest, EqualQuestionsAtOnceAreOneCall) {
  const auto adviser = Patient();
  connection_->Hold(true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { EXPECT_TRUE(adviser->Advise(Question()).ok()); });
  while (adviser->counters().questions < 8) std::this_thread::yield();
  connection_->Hold(false);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(connection_->calls(), 1);
}

TEST_F(AdviserTest, ThreeFailuresOpenTheBreakerAndOneTrialClosesIt) {
  const auto adviser = Patient();
  connection_->Answer(Failing(absl::StatusCode::kUnavailable));
  for (const char* profile : {"a", "b", "c"})
    EXPECT_EQ(CodeOf(*adviser, profile), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(adviser->counters().is_open);
  const auto refused = adviser->Advise(Question("d"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetErrorDetails(refused.status()).reason, "ADVICE_BREAKER_OPEN");
  EXPECT_EQ(refused.status().message(),
            "the server failed 3 times in a row and is left alone for a while; last: UNAVAILABLE: "
            "as the test says");
  EXPECT_EQ(connection_->calls(), 3);
  Pass(seconds(29));
  EXPECT_EQ(CodeOf(*adviser, "d"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(connection_->calls(), 3);
  Pass(seconds(1));
  EXPECT_EQ(CodeOf(*adviser, "d"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(connection_->calls(), 4);  // the trial, which failed
  Pass(seconds(29));
  EXPECT_EQ(CodeOf(*adviser, "d"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(connection_->calls(), 4);
  connection_->Answer(AnswerFour);
  Pass(seconds(1));
  EXPECT_EQ(CodeOf(*adviser, "d"), absl::StatusCode::kOk);
  EXPECT_FALSE(adviser->counters().is_open);
  EXPECT_EQ(CodeOf(*adviser, "e"), absl::StatusCode::kOk);
}

TEST_F(AdviserTest, OnlyOneCallTriesWhileTheOthersAreRefused) {
  const auto adviser = Patient();
  connection_->Answer(Failing(absl::StatusCode::kUnavailable));
  for (const char* profile : {"a", "b", "c"}) CodeOf(*adviser, profile);
  connection_->Answer(AnswerFour);
  Pass(seconds(30));
  connection_->Hold(true);
  std::thread trial([&] { EXPECT_EQ(CodeOf(*adviser, "a"), absl::StatusCode::kOk); });
  connection_->AwaitCalls(4);
  EXPECT_EQ(CodeOf(*adviser, "b"), absl::StatusCode::kUnavailable);
  connection_->Hold(false);
  trial.join();
  EXPECT_EQ(CodeOf(*adviser, "b"), absl::StatusCode::kOk);
}

TEST_F(AdviserTest, WhatIsWrongWithAQuestionDoesNotOpenTheBreaker) {
  const auto adviser = Patient();
  for (const absl::StatusCode code :
       {absl::StatusCode::kNotFound, absl::StatusCode::kInvalidArgument,
        absl::StatusCode::kPermissionDenied, absl::StatusCode::kFailedPrecondition}) {
    connection_->Answer(Failing(code));
    EXPECT_EQ(CodeOf(*adviser, absl::StrCat("a", static_cast<int>(code))), code);
  }
  EXPECT_FALSE(adviser->counters().is_open);
  EXPECT_EQ(adviser->counters().failed_calls, 0);
}

TEST_F(AdviserTest, AMissingProfileIsAskedForAgainAfterSeconds) {
  const auto adviser = Patient();
  connection_->Answer(Failing(absl::StatusCode::kNotFound));
  EXPECT_EQ(CodeOf(*adviser, "a"), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(*adviser, "a"), absl::StatusCode::kNotFound);
  EXPECT_EQ(connection_->calls(), 1);
  connection_->Answer(AnswerFour);
  Pass(seconds(5));
  EXPECT_EQ(CodeOf(*adviser, "a"), absl::StatusCode::kOk);
}

TEST_F(AdviserTest, WhatIsNotSureIsAskedForAgainAfterHalfAMinute) {
  const auto adviser = Patient();
  connection_->Answer([](const auto& request, v1::RecommendWorkersResponse& reply) {
    absl::Status status = AnswerFour(request, reply);
    reply.mutable_prediction()->set_steady_state(false);
    return status;
  });
  EXPECT_TRUE(adviser->Advise(Question())->low_confidence);
  connection_->Answer(AnswerFour);
  Pass(seconds(29));
  EXPECT_TRUE(adviser->Advise(Question())->low_confidence);
  Pass(seconds(1));
  EXPECT_FALSE(adviser->Advise(Question())->low_confidence);
}

TEST_F(AdviserTest, AWrongQuestionIsNotAsked) {
  const auto adviser = Patient();
  EXPECT_EQ(CodeOf(*adviser, "A"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(connection_->calls(), 0);
}

TEST_F(AdviserTest, AfterThreeVainWaitsNobodyWaitsUntilThereIsAnAnswer) {
  // The first three waits end by their time; were the fourth to wait, it would be for a day.
  const auto adviser = Make({.wait = milliseconds(1)});
  connection_->Hold(true);
  for (const char* profile : {"a", "b", "c"})
    EXPECT_EQ(CodeOf(*adviser, profile), absl::StatusCode::kDeadlineExceeded);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(CodeOf(*adviser, "a"), absl::StatusCode::kDeadlineExceeded);
  connection_->Hold(false);
}

TEST_F(AdviserTest, TooManyThatWaitAreRefused) {
  const auto adviser = Make({.wait = nanoseconds(0), .max_waiting = 2, .threads = 1});
  connection_->Hold(true);
  EXPECT_EQ(CodeOf(*adviser, "a"), absl::StatusCode::kDeadlineExceeded);
  connection_->AwaitCalls(1);
  EXPECT_EQ(CodeOf(*adviser, "b"), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(CodeOf(*adviser, "c"), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(CodeOf(*adviser, "d"), absl::StatusCode::kResourceExhausted);
}

TEST_F(AdviserTest, TheQuestionUsedLongestAgoIsForgottenFirst) {
  const auto adviser = Make({.wait = kLong, .max_questions = 2});
  for (const char* profile : {"a", "b", "a", "c"})
    EXPECT_TRUE(adviser->Advise(Question(profile)).ok());
  EXPECT_EQ(connection_->calls(), 3);
  EXPECT_TRUE(adviser->Advise(Question("a")).ok());
  EXPECT_EQ(connection_->calls(), 3);
  EXPECT_TRUE(adviser->Advise(Question("b")).ok());
  EXPECT_EQ(connection_->calls(), 4);
}

TEST_F(AdviserTest, WorkersOfANodeAreAskedOfCollectivesOnly) {
  const auto adviser = Patient();
  connection_->Answer([](const v1::RecommendWorkersRequest& request, auto& reply) {
    EXPECT_EQ(request.scenario().all_reduce().workers_per_node(), 2);
    return AnswerFour(request, reply);
  });
  AdviceQuestion question = Question();
  question.min_workers = 2;
  question.workers_per_node = 2;
  EXPECT_TRUE(adviser->Advise(question).ok());
  EXPECT_EQ(connection_->calls(), 2);
}

TEST_F(AdviserTest, AConnectionThatThrowsIsAFailureLikeAnother) {
  const auto adviser = Patient();
  connection_->Answer([](const auto&, auto&) -> absl::Status { throw std::runtime_error("no"); });
  EXPECT_EQ(CodeOf(*adviser, "a"), absl::StatusCode::kInternal);
  connection_->Answer(AnswerFour);
  EXPECT_EQ(CodeOf(*adviser, "a"), absl::StatusCode::kOk);
}

TEST_F(AdviserTest, DestructionCancelsWhatIsUnderWay) {
  auto adviser = Make({.wait = nanoseconds(0)});
  connection_->Hold(true);
  for (int i = 0; i < 10; ++i) CodeOf(*adviser, absl::StrCat("a", i));
  connection_->AwaitCalls(2);
  adviser.reset();
  EXPECT_EQ(connection_->calls(), 2);
}

// A server that takes connections and never says anything, as one that was stopped.
class SilentServer {
 public:
  SilentServer() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, generic, size), 0);
    EXPECT_EQ(listen(socket_, 16), 0);
    EXPECT_EQ(getsockname(socket_, generic, &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~SilentServer() { close(socket_); }

  const std::string& address() const { return address_; }

 private:
  const int socket_;
  std::string address_;
};

// Were the call not cancelled, this would take a day.
TEST(GrpcAdviserTest, DestructionDoesNotWaitForASilentServer) {
  const SilentServer server;
  Adviser adviser({.server = server.address()}, {.call_timeout = kLong});
  EXPECT_EQ(adviser.Advise(Question()).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(GrpcAdviserTest, NobodyListensThere) {
  std::string address;
  {
    const SilentServer gone;
    address = gone.address();
  }
  Adviser adviser({.server = address}, {.wait = kLong});
  EXPECT_EQ(adviser.Advise(Question()).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace stepcast::client::adviser_test
