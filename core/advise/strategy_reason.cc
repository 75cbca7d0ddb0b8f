#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/advise/communication_tuning.h"
#include "core/advise/optimize_job.h"
#include "core/advise/tensor_route.h"

namespace stepcast {

namespace {

constexpr double kGigabyte = 1e9;

// The share that the gain rests on, and what is gained without.
std::string ShareText(const StrategyQuery& query, const StrategyAnswer& answer) {
  if (!answer.rests_on_share) return "";
  const ComparedStrategy* measured = nullptr;
  for (const ComparedStrategy& each : answer.compared) {
    if (!each.rests_on_share && (measured == nullptr || each.step_seconds < measured->step_seconds))
      measured = &each;
  }
  return absl::StrFormat(
      "; it rests on the assumed share of %g (fused_share), which nobody measured%s",
      *query.fused_share,
      measured == nullptr ? ""
                          : absl::StrCat("; without it ", measured->name, " is the fastest, ",
                                         PercentText(measured->gain.mean)));
}

std::string ReasonText(const StrategyQuery& query, const TensorRoute& route, MemoryPass pass,
                       const StrategyAnswer& answer) {
  std::string before;
  if (pass != MemoryPass::kNone) {
    before = absl::StrFormat(
        "%s brings memory from %.3g to %.3g GB, within the budget of %.3g; with it ", NameOf(pass),
        answer.memory->before.bytes() / kGigabyte, answer.memory->after.bytes() / kGigabyte,
        static_cast<double>(*query.memory_budget_bytes) / kGigabyte);
  } else if (answer.keeps_as_recorded) {
    return "no difference: nothing that was found is known to be faster than what there is";
  }
  std::vector<std::string> what;
  if (!answer.fused.empty()) {
    size_t operations = 0;
    for (const NamedFusedOperations& group : answer.fused) operations += group.operations.size();
    what.push_back(absl::StrCat(operations, " operations fused into ", answer.fused.size()));
  }
  size_t gradients = 0;
  int32_t parts = 0;
  for (const NamedTensors& group : answer.tensors) {
    gradients += group.operations.size();
    parts += group.partitions > 1 ? group.partitions : 0;
  }
  what.push_back(answer.setting.empty() ? absl::StrCat(gradients, " gradients in ",
                                                       answer.tensors.size(), " ", route.noun())
                                        : answer.setting);
  if (answer.by_layer) what.push_back("what the first layers need first");
  if (parts > 0 && answer.setting.empty())
    what.push_back(absl::StrCat("some cut in ", parts, " parts"));
  std::string all;
  for (size_t i = 0; i < what.size(); ++i)
    absl::StrAppend(&all, i == 0 ? "" : i + 1 < what.size() ? ", " : " and ", what[i]);
  const Interval& interval = answer.gain.confidence_interval;
  return absl::StrFormat("%s%s%s gain %s (%s to %s): a step of %.4g s where it was %.4g s%s",
                         before, answer.gain.is_none ? "no difference is known: " : "", all,
                         PercentText(answer.gain.mean), PercentText(interval.lower),
                         PercentText(interval.upper), answer.prediction.step_time.mean,
                         answer.as_recorded.step_time.mean, ShareText(query, answer));
}

}  // namespace

void Explain(const StrategyQuery& query, const TensorRoute& route, MemoryPass pass,
             StrategyAnswer& answer) {
  const std::string table = query.fused_costs.empty()
                                ? ""
                                : absl::StrCat("a table of ", query.fused_costs.size(), " entries");
  const std::string estimate =
      query.fused_share.has_value()
          ? absl::StrFormat(
                "an estimate: of all but the last operation %g of the sum of their "
                "times%s",
                *query.fused_share,
                *query.fused_share == kDproFusedShare ? ", as dPRO's simulated mode has it" : "")
          : "";
  answer.cost_source =
      table.empty() && estimate.empty()
          ? "none is known, so no operations are fused: give their times (--costs; "
            "fused_costs) or an estimate (--fused-share; fused_share)"
          : absl::StrCat(table, table.empty() || estimate.empty() ? "" : ", else ", estimate);
  if (answer.lower_bound_seconds.has_value()) {
    answer.why_no_bound.clear();
  } else if (*route.why_no_bound() != '\0') {
    answer.why_no_bound = route.why_no_bound();
  } else if (pass != MemoryPass::kNone) {
    answer.why_no_bound = "the bound is of the job as recorded, which does not fit";
  } else if (query.fused_share.has_value() || !query.fused_costs.empty()) {
    answer.why_no_bound = "fused operations shorten the computation that a bound rests on";
  } else {
    answer.why_no_bound = "the time budget was spent before";
  }
  answer.reason = ReasonText(query, route, pass, answer);
}

}  // namespace stepcast
