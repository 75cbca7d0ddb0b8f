// The metrics of stepcast-admission, and their text for Prometheus.
//
// stepcast_admission_reviews_total{kind, outcome, dry_run}: reviews by what became of them
//     (job_advice.h); kind is "other" for what is none of the known ones.
// stepcast_admission_review_seconds{}: how long reviews took, from the whole body to the answer.
// stepcast_admission_http_responses_total{code}: answers, refusals among them.
// stepcast_admission_advice_calls_total{result}: questions put to stepcastd; failed: those that
//     count for the breaker.
// stepcast_admission_advice_breaker_open{}: 1 while stepcastd is not asked because it failed.
// Beside them stepcast_build_info, stepcast_tls_certificate_expiry_seconds, stepcast_reloads_total
// and process_*, as stepcastd has them. Threads: safe.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "deploy/kubernetes/admission/job_advice.h"
#include "server/metrics/process_metrics.h"
#include "stepcast/adviser.h"

namespace stepcast::admission {

class WebhookMetrics {
 public:
  explicit WebhookMetrics(const std::string& version);

  void OnReview(const std::string& kind, Outcome outcome, bool dry_run, double seconds);
  void OnHttpReply(int code);

  // In the Prometheus text format 0.0.4, with the counters of advice as they are now.
  std::string Text(const client::AdviserCounters& advice) const;

  // Takes over what an Adviser had counted that ends: the next one counts from 0.
  void Keep(const client::AdviserCounters& ended);

 private:
  prometheus::Registry registry_;
  server::ProcessMetrics process_;
  prometheus::Family<prometheus::Counter>& reviews_;
  prometheus::Histogram& seconds_;
  prometheus::Family<prometheus::Counter>& replies_;
  std::atomic<int64_t> ended_calls_{0};  // of Advisers that have ended
  std::atomic<int64_t> ended_failures_{0};

 public:
  server::SecurityMetrics security;
};

}  // namespace stepcast::admission
