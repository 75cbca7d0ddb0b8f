#include "client/src/convert/status_proto.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "client/src/wire_status.h"

namespace stepcast::client {

void ToProto(const absl::Status& from, google::rpc::Status& to) {
  to.set_code(static_cast<int>(from.code()));
  to.set_message(std::string(from.message()));
  std::map<std::pair<bool, std::string>, std::string> details;
  from.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    const bool is_behind = !absl::EndsWith(type, "google.rpc.ErrorInfo");
    details[{is_behind, std::string(type)}] = std::string(payload);
  });
  for (const auto& [key, payload] : details) {
    google::protobuf::Any& detail = *to.add_details();
    detail.set_type_url(key.second);
    detail.set_value(payload);
  }
}

void FromProto(const google::rpc::Status& from, absl::Status& to) {
  to = StatusFromWire(static_cast<absl::StatusCode>(from.code()), from.message(),
                      from.SerializeAsString());
}

}  // namespace stepcast::client
