#include "server/metrics/call_interceptor.h"

namespace stepcast::server {

namespace {

namespace grpc_hooks = grpc::experimental;

class CallInterceptor final : public grpc_hooks::Interceptor {
 public:
  CallInterceptor(CallMetrics::Method& method, const Clock& clock)
      : method_(method), clock_(clock), start_ns_(clock.MonotonicNs()) {
    method_.started->Increment();
  }

  // A call that ends before it has a status was cancelled before it was answered.
  ~CallInterceptor() override {
    constexpr double kSecondsPerNs = 1e-9;
    method_.handled[code_]->Increment();
    method_.seconds->Observe(static_cast<double>(clock_.MonotonicNs() - start_ns_) * kSecondsPerNs);
  }

  void Intercept(grpc_hooks::InterceptorBatchMethods* methods) override {
    using Point = grpc_hooks::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::POST_RECV_MESSAGE) &&
        methods->GetRecvMessage() != nullptr)
      method_.received->Increment();
    if (methods->QueryInterceptionHookPoint(Point::PRE_SEND_MESSAGE)) method_.sent->Increment();
    if (methods->QueryInterceptionHookPoint(Point::PRE_SEND_STATUS)) {
      const auto code = static_cast<size_t>(methods->GetSendStatus().error_code());
      if (code < method_.handled.size()) code_ = code;
    }
    methods->Proceed();
  }

 private:
  CallMetrics::Method& method_;
  const Clock& clock_;
  const int64_t start_ns_;
  size_t code_ = static_cast<size_t>(grpc::StatusCode::CANCELLED);
};

class Factory final : public grpc_hooks::ServerInterceptorFactoryInterface {
 public:
  Factory(CallMetrics& metrics, const Clock& clock) : metrics_(metrics), clock_(clock) {}
  grpc_hooks::Interceptor* CreateServerInterceptor(grpc_hooks::ServerRpcInfo* info) override {
    return new CallInterceptor(metrics_.Of(info->method() == nullptr ? "" : info->method()),
                               clock_);
  }

 private:
  CallMetrics& metrics_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<grpc_hooks::ServerInterceptorFactoryInterface> MakeCallInterceptorFactory(
    CallMetrics& metrics, const Clock& clock) {
  return std::make_unique<Factory>(metrics, clock);
}

}  // namespace stepcast::server
