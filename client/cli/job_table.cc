#include "client/cli/job_table.h"

#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/allocation_table.h"
#include "client/cli/characters.h"
#include "client/cli/comparison_table.h"
#include "client/cli/order_table.h"
#include "client/cli/prediction_table.h"
#include "client/cli/recommendation_table.h"
#include "client/cli/table.h"
#include "client/cli/time_text.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

using Align = Table::Align;

std::string TextOrDash(const std::string& text) {
  return text.empty() ? "-" : Utf8(Characters(text));
}

std::string StateText(const Job& job) {
  std::string state = absl::AsciiStrToLower(std::string(JobStateName(job.state)));
  if (job.cancel_requested && !job.done) state += ", to be cancelled";
  return state;
}

struct ToText {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(const PredictThroughputResponse& reply) const {
    return PredictionTable(reply.predictions);
  }
  std::string operator()(const RecommendWorkersResponse& reply) const {
    return RecommendationText(reply);
  }
  std::string operator()(const OptimizeOrderResponse& reply) const {
    return OrderText(reply, kDefaultTransfers);
  }
  std::string operator()(const AllocateWorkersResponse& reply) const {
    return AllocationText(reply);
  }
  std::string operator()(const CompareModelsResponse& reply) const { return ComparisonText(reply); }
};

struct ToReplyJson {
  std::string operator()(std::monostate) const { return ""; }
  template <typename Reply>
  std::string operator()(const Reply& reply) const {
    return ToJson(reply);
  }
};

}  // namespace

std::string JobTable(const std::vector<Job>& jobs) {
  Table table({{"name", Align::kLeft},
               {"method", Align::kLeft},
               {"state", Align::kLeft},
               {"attempts"},
               {"created", Align::kLeft},
               {"started", Align::kLeft},
               {"ended", Align::kLeft}});
  for (const Job& job : jobs) {
    table.AddRow({TextOrDash(job.name), TextOrDash(job.method), StateText(job),
                  absl::StrCat(job.attempts), TimeText(job.create_time), TimeText(job.start_time),
                  TimeText(job.end_time)});
  }
  return table.Text();
}

std::string JobText(const Job& job) {
  Table table({{"job", Align::kLeft}, {TextOrDash(job.name), Align::kLeft}});
  table.AddRow({"method", TextOrDash(job.method)});
  table.AddRow({"state", StateText(job)});
  table.AddRow({"attempts", absl::StrCat(job.attempts)});
  table.AddRow({"created", TimeText(job.create_time)});
  table.AddRow({"started", TimeText(job.start_time)});
  table.AddRow({"ended", TimeText(job.end_time)});
  table.AddRow({"simulated", absl::StrCat("about ", job.simulated_operations, " operations")});
  table.AddRow({"server", TextOrDash(job.replica)});
  return table.Text();
}

std::string ReplyText(const JobReply& reply) { return std::visit(ToText{}, reply); }

std::string ReplyJson(const JobReply& reply) { return std::visit(ToReplyJson{}, reply); }

}  // namespace stepcast::client
