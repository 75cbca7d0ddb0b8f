// The page /report/profiles/{profile}: reports for people, beside the RPCs.
//
// It asks its own server over a channel within the process, with the credentials that its caller
// showed. So whoever may call PredictThroughput may see it, and is refused as a call is; and its
// questions wait in the same queues, are counted and cached as everybody's. Only so many are made
// at one time, each one question after the other, so that pages never hold more than as many
// threads.
//
// Threads: safe; Answer blocks until the page is made. Lifetime: outlives the HTTP server, which is
// gone before the server that is asked.
#pragma once

#include <grpcpp/channel.h>

#include <atomic>
#include <memory>
#include <string>

#include "server/base/mutex.h"
#include "server/http/http_server.h"

namespace stepcast::server {

struct ReportPagesOptions {
  bool only_local = true;   // the listener is on loopback
  int max_pages = 2;        // at one time
  double max_seconds = 60;  // for one page
};

class ReportPages {
 public:
  explicit ReportPages(const ReportPagesOptions& options) : options_(options) {}

  // From now on the channel is asked; before, and after Stop, the answer is 503.
  void Serve(std::shared_ptr<grpc::Channel> channel);
  // Pages in the making ask nothing more.
  void Stop();

  // 200 with the page. Else plain text, whose first line is the code of the service, the reason and
  // the message: 401, 403, 404, 400 for a faulty query, 421 for a foreign host's name on loopback,
  // 429 and 503 with Retry-After, 504.
  HttpReply Answer(const HttpRequest& request);

 private:
  const ReportPagesOptions options_;
  std::atomic<bool> stopped_{false};
  Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ STEPCAST_GUARDED_BY(mutex_);
  // Held by those that are being made, and until they are sent.
  const std::shared_ptr<int> pages_ = std::make_shared<int>(0);
};

}  // namespace stepcast::server
