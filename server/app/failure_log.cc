#include "server/app/failure_log.h"

#include <string>

#include "core/base/error.h"

namespace stepcast::server {

void FailureLog::OnFailure(std::string_view method, const absl::Status& status) {
  log_.Error("call failed", {{"method", std::string(method)},
                             {"code", absl::StatusCodeToString(status.code())},
                             {"reason", DetailsOf(status).reason},
                             {"message", std::string(status.message())}});
}

}  // namespace stepcast::server
