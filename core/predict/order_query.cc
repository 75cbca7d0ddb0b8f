#include "core/predict/order_query.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/orders/forward_pass.h"
#include "core/predict/request_faults.h"

namespace stepcast {

namespace {

void CheckMethods(const std::vector<OrderMethod>& methods, bool recorded_transfers,
                  RequestFaults& faults) {
  for (size_t i = 0; i < methods.size(); ++i) {
    faults.AddIf(methods[i] == OrderMethod::kRecorded && !recorded_transfers,
                 absl::StrCat("methods[", i, "]"),
                 "RECORDED, and the profile is of workers that meet in collectives: no transfer "
                 "was recorded");
    const auto first = std::find(methods.begin(), methods.end(), methods[i]);
    const auto before = static_cast<size_t>(first - methods.begin());
    faults.AddIf(before < i, absl::StrCat("methods[", i, "]"), "is the same method as methods[",
                 before, "]");
  }
}

}  // namespace

absl::StatusOr<OrderQuery> ResolveOrder(const Profile& profile, const OrderDraft& draft) {
  RequestFaults faults;
  ScenarioDraft unordered = draft.scenario;
  // Every order that is simulated is one of the methods' or a baseline; none is assumed.
  if (auto* servers = std::get_if<ParameterServersDraft>(&unordered.communication)) {
    servers->transfer_order = TransferOrder::kGraph;
    servers->transfer_priorities.clear();
  } else if (std::holds_alternative<std::monostate>(unordered.communication) &&
             !profile.has_collectives()) {
    unordered.communication = ParameterServersDraft{.transfer_order = TransferOrder::kGraph};
  }
  absl::StatusOr<Scenario> scenario = ResolveScenario(profile, unordered);
  faults.AddPart("scenario", scenario.status());
  const bool has_servers = scenario.ok() && scenario->server_count() > 0;
  faults.AddIf(scenario.ok() && !has_servers, "scenario",
               "orders are of transfers between workers and parameter servers; collectives run in "
               "graph order, and what helps them is how gradients are grouped (stepcast tune, "
               "OptimizeCommunication)");
  if (draft.scenario.servers().transfer_order.has_value())
    faults.Add("scenario.parameter_servers.transfer_order",
               "must be unset: the methods say which orders to try");
  faults.AddIf(!draft.scenario.servers().transfer_priorities.empty(),
               "scenario.parameter_servers.transfer_priorities",
               draft.scenario.servers().transfer_priorities.size(),
               " given, must be empty: the methods say which orders to try");
  absl::StatusOr<SimulationOptions> options = ResolveOptions(draft.options);
  faults.AddPart("options", options.status());
  CheckMethods(draft.methods, !profile.has_collectives(), faults);
  faults.AddIf(scenario.ok() && draft.options.start == Start::kStaggered &&
                   !scenario->start_offsets_ns.empty(),
               "scenario.start_offsets_ns", "must be empty with start STAGGERED, which draws them");
  absl::StatusOr<Profile> forward_pass = draft.inference ? ForwardPass(profile) : profile;
  faults.AddPart("inference", forward_pass.status());
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  OrderQuery query{.scenario = *std::move(scenario),
                   .options = *options,
                   .methods = draft.methods,
                   .forward_pass = std::nullopt};
  if (draft.inference) query.forward_pass = *std::move(forward_pass);
  if (query.methods.empty()) {
    query.methods = {OrderMethod::kTic, OrderMethod::kTac, OrderMethod::kReverse,
                     OrderMethod::kGraph};
    if (!profile.has_collectives())
      query.methods.insert(query.methods.end() - 1, OrderMethod::kRecorded);
  }
  return query;
}

}  // namespace stepcast
