#include <string>
#include <utility>

#include "server/convert/prediction_convert.h"
#include "server/convert/search_convert.h"
#include "server/convert/strategy_convert.h"
#include "server/handlers/expected_work.h"
#include "server/rpc/grpc_wire.h"
#include "server/rpc/services.h"
#include "server/rpc/shared_answers.h"
#include "server/rpc/stream_call.h"
#include "server/rpc/unary_call.h"
#include "stepcast/v1/prediction_service.grpc.pb.h"

namespace stepcast::server {

namespace {

// A service whose method of that name takes bytes.
using Service = v1::PredictionService;
using FitMethods = Service::WithRawCallbackMethod_FitParsingOverhead<
    Service::WithRawCallbackMethod_FitCollectives<Service::WithRawCallbackMethod_FitContention<
        Service::WithRawCallbackMethod_FitRuns<Service::Service>>>>;
using SearchMethods = Service::WithRawCallbackMethod_RecommendWorkers<
    Service::WithRawCallbackMethod_RecommendLayout<Service::WithRawCallbackMethod_OptimizeOrder<
        Service::WithRawCallbackMethod_OptimizeCommunication<
            Service::WithRawCallbackMethod_OptimizeJob<
                Service::WithRawCallbackMethod_AllocateWorkers<FitMethods>>>>>>;
using PredictionMethods = Service::WithRawCallbackMethod_PredictThroughput<
    Service::WithRawCallbackMethod_CompareModels<Service::WithRawCallbackMethod_DiagnoseJob<
        Service::WithRawCallbackMethod_GenerateTrace<SearchMethods>>>>;

class PredictionRpc final : public PredictionMethods {
 public:
  PredictionRpc(const PredictionHandler& handler, const CallEnvironment& environment)
      : handler_(handler), environment_(environment), answers_(environment) {}

  grpc::ServerUnaryReactor* PredictThroughput(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* reply) override {
    return Start<v1::PredictThroughputRequest>(
        {"PredictThroughput", context, request, reply},
        [this](auto asked) { return handler_.PredictThroughput(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* RecommendWorkers(grpc::CallbackServerContext* context,
                                             const grpc::ByteBuffer* request,
                                             grpc::ByteBuffer* reply) override {
    return Start<v1::RecommendWorkersRequest>(
        {"RecommendWorkers", context, request, reply},
        [this](auto asked) { return handler_.RecommendWorkers(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* OptimizeOrder(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* reply) override {
    return Start<v1::OptimizeOrderRequest>(
        {"OptimizeOrder", context, request, reply},
        [this](auto asked) { return handler_.OptimizeOrder(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* OptimizeCommunication(grpc::CallbackServerContext* context,
                                                  const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* reply) override {
    return Start<v1::OptimizeCommunicationRequest>(
        {"OptimizeCommunication", context, request, reply},
        [this](auto asked) { return handler_.OptimizeCommunication(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* AllocateWorkers(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* reply) override {
    return Start<v1::AllocateWorkersRequest>(
        {"AllocateWorkers", context, request, reply},
        [this](auto asked) { return handler_.AllocateWorkers(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* CompareModels(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* reply) override {
    return Start<v1::CompareModelsRequest>(
        {"CompareModels", context, request, reply},
        [this](auto asked) { return handler_.CompareModels(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* DiagnoseJob(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* reply) override {
    return Start<v1::DiagnoseJobRequest>(
        {"DiagnoseJob", context, request, reply},
        [this](auto asked) { return handler_.DiagnoseJob(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* OptimizeJob(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* reply) override {
    return Start<v1::OptimizeJobRequest>(
        {"OptimizeJob", context, request, reply},
        [this](auto asked) { return handler_.OptimizeJob(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* FitParsingOverhead(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* reply) override {
    return Start<v1::FitParsingOverheadRequest>(
        {"FitParsingOverhead", context, request, reply},
        [this](auto asked) { return handler_.FitParsingOverhead(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* FitCollectives(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* reply) override {
    return Start<v1::FitCollectivesRequest>(
        {"FitCollectives", context, request, reply},
        [this](auto asked) { return handler_.FitCollectives(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* FitContention(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* reply) override {
    return Start<v1::FitContentionRequest>(
        {"FitContention", context, request, reply},
        [this](auto asked) { return handler_.FitContention(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* RecommendLayout(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* reply) override {
    return Start<v1::RecommendLayoutRequest>(
        {"RecommendLayout", context, request, reply},
        [this](auto asked) { return handler_.RecommendLayout(std::move(asked)); });
  }

  grpc::ServerUnaryReactor* FitRuns(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* reply) override {
    return Start<v1::FitRunsRequest>({"FitRuns", context, request, reply}, [this](auto asked) {
      return handler_.FitRuns(std::move(asked));
    });
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerateTrace(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override {
    const CalledMethod method{.service = v1::PredictionService::service_full_name(),
                              .name = "GenerateTrace"};
    auto* call = new StreamCall(environment_, method, *context, *request);
    call->Start([this](StreamCall& started) {
      v1::GenerateTraceRequest message;
      const absl::Status parsed = started.Read(message);
      if (!parsed.ok()) return started.End(parsed);
      auto computation = handler_.GenerateTrace(FromWire(message));
      if (!computation.ok()) return started.End(computation.status());
      const ExpectedWork work = computation->work;
      started.Compute(work, [work, todo = *std::move(computation)](StreamCall& checked) mutable {
        Stream(checked, work, std::move(todo));
      });
    });
    return call;
  }

 private:
  // `check` is the handler's method.
  template <typename Request, typename Check>
  grpc::ServerUnaryReactor* Start(const UnaryWire& wire, Check check) {
    auto* call = new UnaryCall(environment_, v1::PredictionService::service_full_name(), wire);
    SharedAnswers::Request asked =
        SharedAnswers::RequestOf(*call, wire.method, handler_.ProfilesGeneration());
    if (answers_.AnswerAtOnce(*call, asked)) return call;
    call->Start([this, check, asked = std::move(asked)](UnaryCall& started) mutable {
      Request message;
      const absl::Status parsed = started.Read(message);
      if (!parsed.ok()) return started.Fail(parsed);
      auto computation = check(FromWire(message));
      if (!computation.ok()) return started.Fail(computation.status());
      // The profile's content stands for it, be it stored or sent.
      if constexpr (requires { message.clear_source(); }) message.clear_source();
      std::string key = SharedAnswers::KeyOf(asked.method, computation->content(), message);
      SharedAnswers::Question question{
          .request = std::move(asked), .key = std::move(key), .work = computation->work()};
      answers_.Answer(started, std::move(question),
                      [todo = *std::move(computation)](StopCheck stop) mutable {
                        return Compute(std::move(todo), stop);
                      });
    });
    return call;
  }

  template <typename Answer>
  static absl::StatusOr<ComputedReply> Compute(Computation<Answer> computation, StopCheck stop) {
    const absl::StatusOr<Answer> answer = std::move(computation)(stop);
    if (!answer.ok()) return answer.status();
    ComputedReply computed{.reply = {}, .is_final = !answer->context.is_cut_short};
    auto message = ToWire(*answer);
    absl::Status written = SerializeMessage(message, computed.reply.computed);
    if constexpr (requires { message.mutable_simulation(); })
      message.mutable_simulation()->set_cached(true);
    written.Update(SerializeMessage(message, computed.reply.shared));
    if (!written.ok()) return written;
    return computed;
  }

  static void Stream(StreamCall& call, const ExpectedWork& work, TraceComputation computation) {
    call.state().StartJob();
    // No job makes a trace.
    WorkProgress progress(work, call.state().environment().clock, Remedy::kAskForLess);
    const auto sink = [&call](std::string piece) {
      v1::GenerateTraceResponse message;
      message.set_chunk(std::move(piece));
      return call.Write(message);
    };
    const auto stop = [&] {
      progress.Count();
      return call.state().Check();
    };
    call.End(progress.Explain(std::move(computation.run)(sink, stop).status()));
  }

  const PredictionHandler& handler_;
  const CallEnvironment& environment_;
  SharedAnswers answers_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePredictionService(const PredictionHandler& handler,
                                                     const CallEnvironment& environment) {
  return std::make_unique<PredictionRpc>(handler, environment);
}

}  // namespace stepcast::server
