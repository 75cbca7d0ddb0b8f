// Counters of the calls that the server turned away, by reason: not for what they asked, but for
// who asked, or for what there was to do already.
//
// Reasons that are not among kRejectionReasons are no rejections. Every series is there from the
// start, at zero. Threads: safe.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <map>
#include <string>
#include <string_view>

namespace stepcast::server {

inline constexpr std::string_view kRejectionReasons[] = {"QUEUE_FULL",
                                                         "DEADLINE_UNREACHABLE",
                                                         "MEMORY_EXHAUSTED",
                                                         "STORE_FULL",
                                                         "CLIENT_QUOTA_EXCEEDED",
                                                         "JOB_TOO_LONG",
                                                         "STORE_UNAVAILABLE",
                                                         "SHUTTING_DOWN",
                                                         "CREDENTIALS_MISSING",
                                                         "CREDENTIALS_MALFORMED",
                                                         "TOKEN_UNKNOWN",
                                                         "CERTIFICATE_UNKNOWN",
                                                         "ROLE_TOO_LOW"};

class RejectionMetrics {
 public:
  // The registry must outlive it.
  explicit RejectionMetrics(prometheus::Registry& registry);

  // Of any call that failed, once: the reason in its error.
  void OnFailure(std::string_view reason);

 private:
  std::map<std::string, prometheus::Counter*, std::less<>>
      by_reason_;  // unchanged after construction
};

}  // namespace stepcast::server
