#include "server/app/call_log.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

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

void RejectionLog::OnRejected(const CalledMethod& method, const std::string& peer,
                              const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  metrics_.OnFailure(details.reason);
  int left_out = 0;
  if (!MayLog(left_out)) return;
  const auto caller = details.metadata.find("caller");
  log_.Warning("call refused", {{"method", Quoted(method.name)},
                                {"peer", peer},
                                {"reason", details.reason},
                                {"caller", caller == details.metadata.end() ? "" : caller->second},
                                {"left_out", absl::StrCat(left_out)}});
}

bool RejectionLog::MayLog(int& left_out) {
  const int64_t second = clock_.MonotonicNs() / kNsPerSecond;
  MutexLock lock(mutex_);
  if (std::exchange(second_, second) != second) lines_ = 0;
  if (lines_ == kLinesPerSecond) {
    ++left_out_;
    return false;
  }
  ++lines_;
  left_out = std::exchange(left_out_, 0);
  return true;
}

}  // namespace stepcast::server
