#include "server/metrics/call_metrics.h"

#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

using CounterFamily = prometheus::Family<prometheus::Counter>;

CounterFamily& Counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

prometheus::Histogram::BucketBoundaries CallBuckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};
}

}  // namespace

CallMetrics::CallMetrics(prometheus::Registry& registry, const std::vector<MethodLabels>& methods)
    : started_(Counters(registry, metric::kGrpcStarted, "Calls started.")),
      handled_(Counters(registry, metric::kGrpcHandled, "Calls completed, by status code.")),
      received_(Counters(registry, metric::kGrpcMessagesReceived, "Messages received.")),
      sent_(Counters(registry, metric::kGrpcMessagesSent, "Messages sent.")),
      seconds_(prometheus::BuildHistogram()
                   .Name(metric::kGrpcHandlingSeconds)
                   .Help("Time from a call's start to its end.")
                   .Register(registry)),
      other_(Make({.service = "other", .method = "other", .type = "unary"})) {
  for (const MethodLabels& labels : methods)
    methods_.emplace("/" + labels.service + "/" + labels.method, Make(labels));
}

CallMetrics::Method& CallMetrics::Of(std::string_view path) {
  const auto at = methods_.find(path);
  return at == methods_.end() ? other_ : at->second;
}

CallMetrics::Method CallMetrics::Make(const MethodLabels& labels) {
  const prometheus::Labels all{
      {"grpc_type", labels.type}, {"grpc_service", labels.service}, {"grpc_method", labels.method}};
  Method method{.started = &started_.Add(all),
                .received = &received_.Add(all),
                .sent = &sent_.Add(all),
                .seconds = &seconds_.Add(all, CallBuckets())};
  for (size_t code = 0; code < kCodeNames.size(); ++code) {
    prometheus::Labels with_code = all;
    with_code.emplace("grpc_code", kCodeNames[code]);
    method.handled[code] = &handled_.Add(with_code);
  }
  return method;
}

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

RejectionMetrics::RejectionMetrics(prometheus::Registry& registry) {
  auto& family = prometheus::BuildCounter()
                     .Name(metric::kRejections)
                     .Help("Calls turned away, by the reason in their error.")
                     .Register(registry);
  for (const std::string_view reason : kRejectionReasons) {
    by_reason_.emplace(reason, &family.Add({{"reason", std::string(reason)}}));
  }
}

void RejectionMetrics::OnFailure(std::string_view reason) {
  const auto at = by_reason_.find(reason);
  if (at != by_reason_.end()) at->second->Increment();
}

}  // namespace stepcast::server
