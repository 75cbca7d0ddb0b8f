#include "deploy/kubernetes/admission/webhook_metrics.h"

#include <prometheus/gauge.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stepcast::admission {

namespace {

constexpr std::array<std::string_view, 5> kKinds{"Job", "PyTorchJob", "MPIJob", "TrainJob",
                                                 "JobSet"};
constexpr std::array<Outcome, 8> kOutcomes{
    Outcome::kSkipped,   Outcome::kAgreed, Outcome::kAdvised, Outcome::kSet,
    Outcome::kUncertain, Outcome::kWrong,  Outcome::kLate,    Outcome::kUnavailable};

// Label of a known kind; a stranger cannot make many.
std::string KindLabel(const std::string& kind) {
  for (const std::string_view known : kKinds) {
    if (kind == known) return kind;
  }
  return "other";
}

prometheus::ClientMetric Value(const char* label, const char* value, double number,
                               prometheus::MetricType type) {
  prometheus::ClientMetric metric;
  if (*label != '\0') metric.label = {{label, value}};
  if (type == prometheus::MetricType::Counter) {
    metric.counter.value = number;
  } else {
    metric.gauge.value = number;
  }
  return metric;
}

}  // namespace

WebhookMetrics::WebhookMetrics(const std::string& version)
    : reviews_(prometheus::BuildCounter()
                   .Name("stepcast_admission_reviews_total")
                   .Help("Admission reviews by kind of object and what became of them.")
                   .Register(registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("stepcast_admission_review_seconds")
                   .Help("Seconds from a review's last byte to its answer.")
                   .Register(registry_)
                   .Add({}, prometheus::Histogram::BucketBoundaries{0.001, 0.005, 0.02, 0.1, 0.25,
                                                                    0.5, 1, 1.5, 2, 5})),
      replies_(prometheus::BuildCounter()
                   .Name("stepcast_admission_http_responses_total")
                   .Help("HTTPS requests by the status that answered them.")
                   .Register(registry_)),
      security(registry_) {
  prometheus::BuildGauge()
      .Name("stepcast_build_info")
      .Help("1, with the version of the program.")
      .Register(registry_)
      .Add({{"version", version}})
      .Set(1);
  for (const std::string_view kind : kKinds) {
    for (const Outcome outcome : kOutcomes)
      reviews_.Add(
          {{"kind", std::string(kind)}, {"outcome", NameOf(outcome)}, {"dry_run", "false"}});
  }
  replies_.Add({{"code", "200"}});
}

void WebhookMetrics::OnReview(const std::string& kind, Outcome outcome, bool dry_run,
                              double seconds) {
  reviews_
      .Add({{"kind", KindLabel(kind)},
            {"outcome", NameOf(outcome)},
            {"dry_run", dry_run ? "true" : "false"}})
      .Increment();
  seconds_.Observe(seconds);
}

void WebhookMetrics::OnHttpReply(int code) {
  replies_.Add({{"code", absl::StrCat(code)}}).Increment();
}

std::string WebhookMetrics::Text(const client::AdviserCounters& advice) const {
  using prometheus::MetricType;
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (prometheus::MetricFamily& family : process_.Collect()) families.push_back(std::move(family));
  const auto failed = static_cast<double>(ended_failures_ + advice.failed_calls);
  const auto calls = static_cast<double>(ended_calls_ + advice.calls);
  prometheus::MetricFamily asked{.name = "stepcast_admission_advice_calls_total",
                                 .help =
                                     "Questions put to stepcastd; failed: other than by "
                                     "being a wrong question.",
                                 .type = MetricType::Counter};
  asked.metric = {Value("result", "answered", calls - failed, MetricType::Counter),
                  Value("result", "failed", failed, MetricType::Counter)};
  prometheus::MetricFamily breaker{.name = "stepcast_admission_advice_breaker_open",
                                   .help = "1 while stepcastd is not asked because it failed.",
                                   .type = MetricType::Gauge};
  breaker.metric = {Value("", "", advice.is_open ? 1 : 0, MetricType::Gauge)};
  families.push_back(std::move(asked));
  families.push_back(std::move(breaker));
  return prometheus::TextSerializer().Serialize(families);
}

void WebhookMetrics::Keep(const client::AdviserCounters& ended) {
  ended_calls_ += ended.calls;
  ended_failures_ += ended.failed_calls;
}

}  // namespace stepcast::admission
