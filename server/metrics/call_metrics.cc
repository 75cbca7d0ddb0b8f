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

}  // namespace stepcast::server
