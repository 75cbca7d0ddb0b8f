#include "client/cli/flags/recommend_flags.h"

#include <google/protobuf/util/time_util.h>

#include <CLI/App.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "client/cli/flags/parsed_option.h"
#include "client/cli/flags/quantity.h"

namespace stepcast::client {

namespace {

const Choices<v1::RecommendWorkersRequest::Objective> kObjectives{
    {"knee", v1::RecommendWorkersRequest::KNEE},
    {"max-throughput", v1::RecommendWorkersRequest::MAX_THROUGHPUT},
    {"min-cost", v1::RecommendWorkersRequest::MIN_COST},
    {"min-time", v1::RecommendWorkersRequest::MIN_TIME}};

}  // namespace

void RecommendFlags::Declare(CLI::App& app) {
  AddChoiceOption(app, "--objective", kObjectives,
                  "knee: the highest throughput times efficiency (default); max-throughput; "
                  "min-cost: of the remaining examples, or of one; min-time",
                  [this](v1::RecommendWorkersRequest::Objective objective) {
                    request_.set_objective(objective);
                  });
  DeclareConstraints(app);
  plan_.Declare(app);
  DeclareCurrent(app);
}

void RecommendFlags::DeclareConstraints(CLI::App& app) {
  v1::Constraints& constraints = *request_.mutable_constraints();
  AddValueOption<int32_t>(app, "--min-workers", "N", "At least so many (default 1)",
                          [&](int32_t workers) { constraints.set_min_workers(workers); });
  AddValueOption<int32_t>(app, "--max-workers", "N",
                          "At most so many (default 16, or --min-workers + 15 where that is "
                          "more). Of more than 256 numbers not all are tried: from 64 on in "
                          "strides, and all around the best",
                          [&](int32_t workers) { constraints.set_max_workers(workers); });
  AddValueOption<int32_t>(app, "--max-servers", "N",
                          "Choose among 1 to so many servers, too (default: only the scenario's)",
                          [&](int32_t servers) { constraints.set_max_parameter_servers(servers); });
  AddValueOption<double>(app, "--min-efficiency", "SHARE", "Least scaling efficiency, 0 to 1",
                         [&](double share) { constraints.set_min_scaling_efficiency(share); });
  AddParsedOption(
      app, "--deadline", "TIME", "The examples must be done within this: 30m, 8h; needs --examples",
      [](const std::string& text) { return ParseDuration(text); },
      [&](std::chrono::nanoseconds time) {
        *constraints.mutable_deadline() =
            google::protobuf::util::TimeUtil::NanosecondsToDuration(time.count());
      });
  AddValueOption<double>(app, "--budget", "AMOUNT",
                         "The most the examples may cost; needs --examples and prices",
                         [&](double amount) { constraints.set_budget(amount); });
}

void RecommendFlags::DeclareList(CLI::App& app) {
  AddParsedOption(
      app, "--workers", "LIST",
      "Only these numbers, at most 256: 1,2,4,8 or 8-16; in place of --min-workers and "
      "--max-workers",
      [](const std::string& text) { return ParseWorkerList(text); },
      [this](const std::vector<int32_t>& counts) {
        request_.mutable_constraints()->mutable_worker_counts()->Assign(counts.begin(),
                                                                        counts.end());
      });
}

v1::RecommendWorkersRequest RecommendFlags::request() const {
  v1::RecommendWorkersRequest request = request_;
  const v1::TrainingPlan plan = plan_.plan();
  if (plan_.has_examples()) request.mutable_constraints()->set_examples(plan.examples());
  if (plan_.has_prices()) {
    v1::Prices& prices = *request.mutable_prices();
    prices.set_worker_hour(plan.worker_hour());
    prices.set_parameter_server_hour(plan.parameter_server_hour());
    prices.set_node_hour(plan.node_hour());
    prices.set_device_hour(plan.device_hour());
    prices.set_currency_code(plan.currency_code());
  }
  if (plan.has_failures()) *request.mutable_failures() = plan.failures();
  return request;
}

void RecommendFlags::DeclareCurrent(CLI::App& app) {
  CLI::Option* workers = AddValueOption<int32_t>(
      app, "--current-workers", "N",
      "The job runs already, with so many: it is not moved for less than that costs, given "
      "--examples",
      [this](int32_t count) { request_.mutable_current()->set_workers(count); });
  AddValueOption<int32_t>(
      app, "--current-servers", "N", "... and so many servers (default: the scenario's)",
      [this](int32_t count) { request_.mutable_current()->set_parameter_servers(count); })
      ->needs(workers);
  AddParsedOption(
      app, "--rescale-time", "TIME",
      "How long the running job stands still when its numbers change: 90s",
      [](const std::string& text) { return ParseDuration(text); },
      [this](std::chrono::nanoseconds time) {
        request_.mutable_current()->set_rescale_seconds(
            std::chrono::duration<double>(time).count());
      })
      ->needs(workers);
}

}  // namespace stepcast::client
