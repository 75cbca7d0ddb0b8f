#include "server/app/call_log.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace stepcast::server {

void CallLog::OnEnd(const CallLabels& call, const absl::Status& status) {
  std::vector<Log::Field> fields{{"method", std::string(call.method)}, {"client", call.client}};
  if (!call.request_id.empty()) fields.push_back({"request_id", call.request_id});
  if (!call.trace_id.empty()) fields.push_back({"trace_id", call.trace_id});
  fields.push_back({"code", absl::StatusCodeToString(status.code())});
  if (!status.ok()) {
    fields.push_back({"reason", DetailsOf(status).reason});
    fields.push_back({"message", std::string(status.message())});
  }
  if (IsServersFault(status.code())) {
    log_.Error("call failed", fields);
  } else {
    log_.Debug("call", fields);
  }
}

}  // namespace stepcast::server
