#include "client/cli/local_connection.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/src/connection.h"
#include "client/src/error_status.h"

#include "core/importing/common/byte_source.h"
#include "server/convert/wire_error.h"
#include "server/local/local_service.h"

namespace stepcast::client {

namespace {

using google::protobuf::Message;

// The status that a client of a server would see.
absl::Status AsSeenByClients(const absl::Status& status) {
  if (status.ok()) return status;
  const server::WireError wire = server::ToWireError(status);
  return StatusFromWire(status.code(), wire.message, wire.details);
}

template <typename Reply>
absl::StatusOr<Reply> AsSeenByClients(absl::StatusOr<Reply> reply) {
  if (!reply.ok()) return AsSeenByClients(reply.status());
  return reply;
}

// The client's stream as the importers' source. Reads it once.
class StreamSource final : public ByteSource {
 public:
  explicit StreamSource(ByteStream& stream) : stream_(stream) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    return stream_.Read(buffer, size);
  }

 private:
  ByteStream& stream_;
};

class LocalConnection : public Connection {
 public:
  absl::Status Call(const Method& method, const Message& request, Message& response,
                    const CallTerms& terms) override {
    return AsSeenByClients(service_.Call(method.path, request, response, terms.timeout));
  }

  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view bytes,
                                            const CallTerms& terms) override {
    return AsSeenByClients(service_.UploadProfile(header, bytes, terms.timeout));
  }

  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      const CallTerms& terms) override {
    StreamSource recording(streams.recording);
    std::optional<StreamSource> graph;
    if (streams.graph != nullptr) graph.emplace(*streams.graph);
    server::LocalImport import{.recording = recording, .graph = graph ? &*graph : nullptr};
    std::deque<StreamSource> recordings;
    for (const auto& [stream, name] : streams.recordings)
      import.recordings.push_back({.recording = &recordings.emplace_back(*stream), .name = name});
    return AsSeenByClients(service_.ImportProfile(header, import, terms.timeout));
  }

  // The failure of `take` is the caller's own, and goes back as it is.
  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                             const CallTerms& terms) override {
    absl::Status taken;
    const auto take_piece = [&](std::string_view piece) { return taken = take(piece); };
    const absl::Status status = service_.GenerateTrace(request, take_piece, terms.timeout);
    return taken.ok() ? AsSeenByClients(status) : taken;
  }

  // Fails, as all about jobs does.
  absl::StatusOr<google::longrunning::Operation> AwaitOperation(const std::string& name,
                                                                const CallTerms& terms) override {
    google::longrunning::GetOperationRequest request;
    request.set_name(name);
    return CallFor<google::longrunning::Operation>(*this, request, terms);
  }

 private:
  server::LocalService service_;
};

}  // namespace

Client MakeLocalClient(const ClientOptions& options) {
  return Client(std::make_shared<LocalConnection>(), options);
}

}  // namespace stepcast::client
