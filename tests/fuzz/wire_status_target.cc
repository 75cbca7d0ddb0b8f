// The details of an error as a client finds them in a reply's metadata.
#include <string>
#include <utility>

#include "client/src/error_status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "core/base/error.h"
#include "server/convert/wire_error.h"
#include "stepcast/error_details.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutator.h"

namespace stepcast::fuzz {

namespace {

absl::Status Everything() {
  return MakeError(absl::StatusCode::kResourceExhausted, "full",
                   {.reason = "STORE_FULL",
                    .metadata = {{"limit", "7"}},
                    .faults = {{.field = "profile", .description = "too large"}},
                    .resource = {.type = "stepcast.v1.Profile", .name = "profiles/p"},
                    .retry_delay_ms = 1500,
                    .quota_subject = "max_profiles"});
}

// Mutates what one of the details holds, too, which to the outer message is bytes.
template <typename Detail>
bool MutateDetail(google::protobuf::Any& any, const Mutation& mutation) {
  Detail detail;
  if (!any.UnpackTo(&detail)) return false;
  MutateMessage(detail, mutation);
  return any.PackFrom(detail);
}

class WireStatusTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    return {server::ToWireError(Everything()).details};
  }

  bool Run(std::string_view input) override {
    const absl::Status status =
        client::StatusFromWire(absl::StatusCode::kResourceExhausted, "full", input);
    Demand(status.code() == absl::StatusCode::kResourceExhausted && status.message() == "full",
           "a failure stays what it is");
    const client::ErrorDetails details = client::GetErrorDetails(status);
    Demand(details == client::GetErrorDetails(status), "details are the same each time");
    return !details.reason.empty();
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    google::rpc::Status status;
    if (mutation.random.Below(2) == 0 || !status.ParseFromString(input) ||
        status.details().empty()) {
      return MutateSerialised(google::rpc::Status::default_instance(), std::move(input), mutation);
    }
    google::protobuf::Any& any = *status.mutable_details(
        static_cast<int>(mutation.random.Below(static_cast<uint64_t>(status.details_size()))));
    const bool is_mutated = MutateDetail<google::rpc::ErrorInfo>(any, mutation) ||
                            MutateDetail<google::rpc::BadRequest>(any, mutation) ||
                            MutateDetail<google::rpc::RetryInfo>(any, mutation) ||
                            MutateDetail<google::rpc::QuotaFailure>(any, mutation) ||
                            MutateDetail<google::rpc::ResourceInfo>(any, mutation);
    return is_mutated ? status.SerializeAsString() : mutation.bytes(std::move(input));
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<WireStatusTarget>(); }

}  // namespace stepcast::fuzz
