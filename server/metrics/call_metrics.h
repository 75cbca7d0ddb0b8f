// Counters of calls by method and code, under go-grpc-prometheus's names.
//
// Every series of a known method is there from the start, at zero. A client can invent methods: all
// unknown ones are one series, `other`. Threads: safe; no locks but the metrics' own. Cost: under a
// microsecond a call.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/metrics/code_name.h"

namespace stepcast::server {

// A method of the server; `type` is unary, client_stream, server_stream or bidi_stream.
struct MethodLabels {
  std::string service;
  std::string method;
  std::string type;
};

class CallMetrics {
 public:
  // The registry must outlive it.
  CallMetrics(prometheus::Registry& registry, const std::vector<MethodLabels>& methods);

  // The series of one method.
  struct Method {
    prometheus::Counter* started = nullptr;
    prometheus::Counter* received = nullptr;
    prometheus::Counter* sent = nullptr;
    prometheus::Histogram* seconds = nullptr;
    std::array<prometheus::Counter*, kCodeNames.size()> handled{};
  };

  // `path` is "/service/method".
  Method& Of(std::string_view path);

 private:
  Method Make(const MethodLabels& labels);

  prometheus::Family<prometheus::Counter>& started_;
  prometheus::Family<prometheus::Counter>& handled_;
  prometheus::Family<prometheus::Counter>& received_;
  prometheus::Family<prometheus::Counter>& sent_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  std::map<std::string, Method, std::less<>> methods_;  // unchanged after construction
  Method other_;
};

}  // namespace stepcast::server
