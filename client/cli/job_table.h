// Jobs, as people read them.
#pragma once

#include <string>
#include <vector>

#include "stepcast/job.h"

namespace stepcast::client {

// A row a job.
std::string JobTable(const std::vector<Job>& jobs);

// A line a property, without what came of it.
std::string JobText(const Job& job);

// What came of it, as the command that asks in a call prints it. Empty for no reply.
std::string ReplyText(const JobReply& reply);
// Its proto JSON.
std::string ReplyJson(const JobReply& reply);

}  // namespace stepcast::client
