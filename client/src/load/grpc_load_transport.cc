#include "client/src/load/grpc_load_transport.h"

#include <google/protobuf/message_lite.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/src/connection.h"
#include "client/src/connection_probe.h"
#include "client/src/error_status.h"
#include "client/src/stub.h"

#include "stepcast/v1/admin_service.pb.h"

namespace stepcast::client {

namespace {

absl::Status NoAnswer(const char* why) { return absl::DataLossError(why); }

template <typename Reply>
bool Parse(std::string_view bytes, Reply& reply) {
  return reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// In proto3 a message that is met twice is merged, field by field.
template <typename Request>
std::string SeedBytes(uint64_t seed) {
  Request request;
  request.mutable_options()->set_seed(seed);
  return request.SerializeAsString();
}

// A reply that parses, and of which `has_answer` holds.
template <typename Reply, bool (*has_answer)(const Reply&)>
absl::Status Check(std::string_view bytes) {
  Reply reply;
  if (!Parse(bytes, reply)) return NoAnswer("the reply cannot be read");
  return has_answer(reply) ? absl::OkStatus() : NoAnswer("the reply holds no answer");
}

bool IsEmpty(const v1::PingResponse& /*reply*/) { return true; }
bool HasPredictions(const v1::PredictThroughputResponse& reply) {
  return reply.predictions_size() > 0;
}
bool HasChoice(const v1::RecommendWorkersResponse& reply) {
  return reply.workers() > 0 || !reply.infeasible_reason().empty();
}
bool HasOrders(const v1::OptimizeOrderResponse& reply) { return reply.orders_size() > 0; }

template <typename Request>
PreparedCall PrepareAs(const Request& request, absl::Status (*check)(std::string_view)) {
  return {.method = MethodFor<Request>().path,
          .request = request.SerializeAsString(),
          .seed = SeedBytes<Request>,
          .check = check};
}

}  // namespace

PreparedCall PreparePing() {
  return {.method = "/stepcast.v1.AdminService/Ping", .check = Check<v1::PingResponse, IsEmpty>};
}

PreparedCall Prepare(const v1::PredictThroughputRequest& request) {
  return PrepareAs(request, Check<v1::PredictThroughputResponse, HasPredictions>);
}

PreparedCall Prepare(const v1::RecommendWorkersRequest& request) {
  return PrepareAs(request, Check<v1::RecommendWorkersResponse, HasChoice>);
}

PreparedCall Prepare(const v1::OptimizeOrderRequest& request) {
  return PrepareAs(request, Check<v1::OptimizeOrderResponse, HasOrders>);
}

namespace {

// Pause as short as the client's: a load begins and goes on while servers come and go.
constexpr int kReconnectMs = 100;

grpc::Slice SliceOf(const std::string& bytes) { return grpc::Slice(bytes.data(), bytes.size()); }

// Parts of a PreparedCall that are ready to be sent.
struct Sendable {
  std::string method;
  grpc::Slice request;  // shared by all calls, never copied
  std::string (*seed)(uint64_t) = nullptr;
};

class Transport final : public GrpcLoadTransport {
 public:
  Transport(const GrpcLoadOptions& options, LoadQuestions questions)
      : options_(options), questions_(std::move(questions)), slots_(options.calls_max) {
    for (const PreparedCall& call : questions_.calls) sendables_.push_back(SendableOf(call));
    for (int i = 0; i < std::max(options_.connections, 1); ++i) stubs_.emplace_back(MakeChannel());
    // gRPC's locks are Abseil's, which Debian builds with a search for deadlocks at every one.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    thread_ = std::thread([this] { HearEnds(); });
  }

  ~Transport() override {
    AwaitAll();
    queue_.Shutdown();
    thread_.join();
  }
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  uint32_t calls_max() const override { return static_cast<uint32_t>(slots_.size()); }

  void Start(uint32_t call, uint64_t question, Listener& listener) override {
    under_way_.fetch_add(1, std::memory_order_relaxed);
    // Whoever may start this call is the only one to look at its slot.
    if (slots_[call] == nullptr) slots_[call] = std::make_unique<Slot>();
    Slot& slot = *slots_[call];
    slot.call = call;
    slot.listener = &listener;
    const Sendable& sendable = sendables_[question % sendables_.size()];
    Begin(slot, stubs_[call % stubs_.size()], sendable, questions_.SeedOf(question), queue_);
  }

  void AwaitAll() override {
    for (int64_t left = under_way_.load(); left != 0; left = under_way_.load())
      under_way_.wait(left);
  }

  absl::Status Check(const PreparedCall& call) override {
    Slot slot;
    grpc::CompletionQueue queue;
    Begin(slot, stubs_[0], SendableOf(call), questions_.first_seed, queue);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    if (!slot.status.ok()) {
      return UnreachableServer(options_.client)
          .Explain(StatusFromWire(static_cast<absl::StatusCode>(slot.status.error_code()),
                                  slot.status.error_message(), slot.status.error_details()),
                   options_.deadline);
    }
    grpc::Slice reply;
    if (!slot.reply.DumpToSingleSlice(&reply).ok())
      return absl::DataLossError("the reply cannot be read");
    return call.check({reinterpret_cast<const char*>(reply.begin()), reply.size()});
  }

 private:
  struct Slot {
    uint32_t call = 0;
    Listener* listener = nullptr;
    std::optional<grpc::ClientContext> context;
    grpc::ByteBuffer reply;
    grpc::Status status;
    // Lives in the memory of the call, which the context holds: so after it, and gone before.
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  };

  Sendable SendableOf(const PreparedCall& call) const {
    return {.method = call.method,
            .request = SliceOf(call.request),
            .seed = questions_.vary > 1 ? call.seed : nullptr};
  }

  std::shared_ptr<grpc::Channel> MakeChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(static_cast<int>(
        std::min<size_t>(options_.client.max_reply_bytes, std::numeric_limits<int>::max())));
    arguments.SetMaxSendMessageSize(-1);
    // Features that no call here uses, and the deadlines they do.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_MINIMAL_STACK, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 1);
    // Otherwise all channels to a server would share one connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMaxConnectMs);
    return grpc::CreateCustomChannel(options_.client.server,
                                     ChannelCredentialsOf(options_.client.credentials), arguments);
  }

  void Begin(Slot& slot, grpc::GenericStub& stub, const Sendable& sendable, uint64_t seed,
             grpc::CompletionQueue& queue) const {
    slot.reader.reset();
    slot.context.emplace();
    slot.context->set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::system_clock::duration>(options_.deadline));
    slot.reply.Clear();
    std::array<grpc::Slice, 2> parts{sendable.request, grpc::Slice()};
    if (sendable.seed != nullptr) parts[1] = SliceOf(sendable.seed(seed));
    const grpc::ByteBuffer request(parts.data(), sendable.seed != nullptr ? 2 : 1);
    slot.reader = stub.PrepareUnaryCall(&*slot.context, sendable.method, request, &queue);
    slot.reader->StartCall();
    slot.reader->Finish(&slot.reply, &slot.status, &slot);
  }

  void HearEnds() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      Slot& slot = *static_cast<Slot*>(tag);
      slot.listener->OnEnded(slot.call, static_cast<absl::StatusCode>(slot.status.error_code()));
      // After the listener, who may have started another: so it is 0 only when there is no more.
      if (under_way_.fetch_sub(1) == 1) under_way_.notify_all();
    }
  }

  const GrpcLoadOptions options_;
  const LoadQuestions questions_;
  std::vector<Sendable> sendables_;  // one a call of the questions
  grpc::CompletionQueue queue_;
  std::vector<grpc::GenericStub> stubs_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<int64_t> under_way_{0};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<GrpcLoadTransport> MakeGrpcLoadTransport(const GrpcLoadOptions& options,
                                                         LoadQuestions questions) {
  return std::make_unique<Transport>(options, std::move(questions));
}

}  // namespace stepcast::client
