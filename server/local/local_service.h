// The service without sockets: a server's handlers, called in this process.
//
// The same checks, answers and errors as a server of the same version gives, on the calling thread
// and, for the runs of a prediction, on as many others as there are processors left. Profiles are
// kept in memory and are gone with the service. There are no jobs.
//
// Threads: safe; any number of calls at once. Calls block, for `timeout` at most.
// Failure: the status of a handler; ToWireError (server/convert/wire_error.h) gives it the form
// that a client of a server sees.
#pragma once

#include <google/protobuf/message.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/importing/common/byte_source.h"
#include "core/importing/common/rank_matching.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server {

// The files of an import, as they are or compressed by gzip. Borrowed; read once.
struct LocalImport {
  ByteSource& recording;
  ByteSource* graph = nullptr;  // null: none
  // The traces of several workers, at least two, `recording` the first of them; else empty.
  std::vector<RankTrace> recordings = {};
};

class LocalService {
 public:
  using Timeout = std::chrono::nanoseconds;

  LocalService();
  ~LocalService();
  LocalService(const LocalService&) = delete;
  LocalService& operator=(const LocalService&) = delete;

  // A unary method by its path on the wire, `/package.Service/Method`. UNIMPLEMENTED, reason
  // NO_JOBS, for those of jobs. REQUIRES: request and response are of the method's types.
  absl::Status Call(std::string_view path, const google::protobuf::Message& request,
                    google::protobuf::Message& response, Timeout timeout);

  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view bytes, Timeout timeout);
  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const LocalImport& import, Timeout timeout);
  // Hands every piece to `take`; its failure ends the call.
  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request,
                             const std::function<absl::Status(std::string_view piece)>& take,
                             Timeout timeout);

 private:
  class Handlers;
  const std::unique_ptr<Handlers> handlers_;
};

}  // namespace stepcast::server
