#include <string>
#include <utility>

#include "server/handlers/expected_work.h"
#include "server/methods/prediction_methods.h"
#include "server/rpc/calls.h"
#include "server/rpc/grpc_wire.h"
#include "server/rpc/services.h"
#include "server/rpc/shared_answers.h"
#include "stepcast/v1/prediction_service.grpc.pb.h"

namespace stepcast::server {

namespace {

using Service = v1::PredictionService;

class PredictionRpc final : public Service::WithRawCallbackMethod_GenerateTrace<Service::Service> {
 public:
  PredictionRpc(const PredictionHandler& handler, const CallEnvironment& environment)
      : handler_(handler), environment_(environment), answers_(environment) {
    const google::protobuf::ServiceDescriptor& service =
        *v1::GenerateTraceRequest::descriptor()->file()->FindServiceByName("PredictionService");
    ForEachPredictionMethod([&]<typename Method>(Method) {
      Serve<Method>(service.FindMethodByName(std::string(Method::Name()))->index());
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
  // Takes calls of the service's method with that index, as bytes: what the generated
  // WithRawCallbackMethod_X does for a method X.
  template <typename Method>
  void Serve(int index) {
    using Handler = grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
    MarkMethodRawCallback(
        index, new Handler([this](grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request, grpc::ByteBuffer* reply) {
          return Start<Method>({Method::Name(), context, request, reply});
        }));
  }

  template <typename Method>
  grpc::ServerUnaryReactor* Start(const UnaryWire& wire) {
    auto* call = new UnaryCall(environment_, v1::PredictionService::service_full_name(), wire);
    SharedAnswers::Request asked =
        SharedAnswers::RequestOf(*call, wire.method, handler_.ProfilesGeneration());
    if (answers_.AnswerAtOnce(*call, asked) || answers_.RefuseAtOnce(*call, asked)) return call;
    call->Start([this, asked = std::move(asked)](UnaryCall& started) mutable {
      typename Method::Request message;
      const absl::Status parsed = started.Read(message);
      if (!parsed.ok()) return started.Fail(parsed);
      auto computation = Method::Check(handler_, message);
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
