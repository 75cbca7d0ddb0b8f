// The ticket of a job: the client who wants it, and what is expected of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepcast::server {

struct JobTicket {
  std::string client;           // jobs of different clients take turns
  std::string method;           // of the job, for listings
  std::string request_id;       // the same
  double expected_seconds = 0;  // on one thread; 0: nothing is known
  std::optional<int64_t>
      deadline_ns;  // on the clock's monotonic time: nobody wants it any more from then on
};

// A job as a listing shows it.
struct JobListing {
  JobTicket ticket;
  bool is_running = false;
  double age_seconds = 0;  // since it was submitted
};

}  // namespace stepcast::server
