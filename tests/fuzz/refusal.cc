#include "tests/fuzz/refusal.h"

#include <algorithm>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "core/base/error.h"
#include "server/convert/utf8.h"
#include "server/convert/wire_error.h"
#include "tests/fuzz/demand.h"

namespace stepcast::fuzz {

namespace {

bool IsReason(const std::string& text) {
  const auto is_allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && text[0] >= 'A' && text[0] <= 'Z' &&
         std::all_of(text.begin(), text.end(), is_allowed);
}

}  // namespace

void DemandSoundRefusal(const absl::Status& status, std::initializer_list<absl::StatusCode> codes) {
  const std::string text = status.ToString();
  Demand(std::find(codes.begin(), codes.end(), status.code()) != codes.end(),
         "a refusal has a code of its kind:", text);
  Demand(!status.message().empty(), "a refusal has a message:", text);
  const ErrorDetails details = DetailsOf(status);
  Demand(IsReason(details.reason), "a refusal has a reason:", text);
  Demand(details.faults.size() <= kMaxFaults, "a refusal names a bounded number of faults:", text);
  const server::WireError wire = server::ToWireError(status);
  Demand(wire.message.size() <= server::kMaxWireMessageBytes && server::IsUtf8(wire.message),
         "a refusal's message is short and UTF-8:", text);
  Demand(wire.details.size() <= server::kMaxWireDetailsBytes,
         "a refusal's details are bounded:", text);
  google::rpc::Status read;
  google::rpc::ErrorInfo info;
  Demand(read.ParseFromString(wire.details) && read.details_size() > 0 &&
             read.details(0).UnpackTo(&info),
         "a refusal's details can be read:", text);
  Demand(info.reason() == details.reason, "a refusal's reason travels:", text);
}

}  // namespace stepcast::fuzz
