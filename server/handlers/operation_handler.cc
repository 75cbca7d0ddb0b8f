#include "server/handlers/operation_handler.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "server/handlers/listing.h"
#include "server/handlers/request_checks.h"

namespace stepcast::server {

namespace {

constexpr std::string_view kOperations = "operations/";
// The listing that a page token of operations is bound to: one of profiles is none.
constexpr char kListing[] = "operations";

absl::StatusOr<std::string> OperationIdOf(std::string_view name) {
  // Ids of operations have the form of those of profiles.
  if (name.substr(0, kOperations.size()) == kOperations &&
      IsProfileId(name.substr(kOperations.size()))) {
    return std::string(name.substr(kOperations.size()));
  }
  return FaultsError(
      "REQUEST_INVALID",
      {{.field = "name",
        .description = name.empty()
                           ? "a name `operations/{operation}` is required"
                           : Quoted(name).append(" is not a name `operations/{operation}`")}});
}

// NOT_FOUND where it is not there. A name that is none, and a store that cannot say, are for the
// computation to meet.
absl::Status WithoutProfile(const std::string& name, ProfileStore& profiles) {
  if (name.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> id = ProfileIdOf(name, "profile");
  if (!id.ok()) return absl::OkStatus();
  const absl::Status found = profiles.GetSummary(*id).status();
  return absl::IsNotFound(found) ? NameSimilar(found, *id, profiles) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoredOperation> OperationHandler::Start(StartJobCall call,
                                                        std::string owner) const {
  std::vector<Fault> faults = std::move(call.faults);
  for (Fault& fault : FaultsOf(ProfilePlacement{.request_id = call.operation.request_id}, ""))
    faults.push_back(std::move(fault));
  if (!faults.empty()) return FaultsError("REQUEST_INVALID", std::move(faults));
  call.operation.owner = std::move(owner);
  call.operation.refusal = WithoutProfile(call.profile, profiles_);
  absl::StatusOr<OperationRecord> started = store_.Start(call.operation);
  if (!started.ok()) return started.status();
  // A repeated request may mean one that is done.
  if (IsDone(started->state)) return store_.Get(started->id);
  return StoredOperation{.record = *std::move(started), .result = {}};
}

absl::StatusOr<StoredOperation> OperationHandler::Get(const std::string& name) const {
  const absl::StatusOr<std::string> id = OperationIdOf(name);
  if (!id.ok()) return id.status();
  return store_.Get(*id);
}

absl::Status OperationHandler::Cancel(const std::string& name) const {
  const absl::StatusOr<std::string> id = OperationIdOf(name);
  return id.ok() ? store_.RequestCancel(*id).status() : id.status();
}

absl::Status OperationHandler::Delete(const std::string& name) const {
  const absl::StatusOr<std::string> id = OperationIdOf(name);
  return id.ok() ? store_.Delete(*id) : id.status();
}

absl::StatusOr<ListOperationsAnswer> OperationHandler::List(const ListOperationsCall& call) const {
  std::vector<Fault> faults;
  if (!call.name.empty() && call.name != kListing) {
    faults.push_back({.field = "name",
                      .description = Quoted(call.name).append(
                          " is not `operations`, the one collection there is")});
  }
  if (!call.filter.empty())
    faults.push_back({.field = "filter",
                      .description = Quoted(call.filter).append(": filters are not supported")});
  if (call.page_size < 0)
    faults.push_back(
        {.field = "page_size", .description = absl::StrCat(call.page_size, " is negative")});
  absl::StatusOr<std::string> after = ReadPageToken(call.page_token, kListing);
  for (Fault& fault : DetailsOf(after.status()).faults) faults.push_back(std::move(fault));
  if (!faults.empty()) return FaultsError("REQUEST_INVALID", std::move(faults));
  const int32_t size =
      call.page_size == 0 ? kDefaultPageSize : std::min(call.page_size, kMaxPageSize);
  absl::StatusOr<OperationPage> page = store_.List({.after = *std::move(after), .limit = size});
  if (!page.ok()) return page.status();
  ListOperationsAnswer answer{.operations = std::move(page->operations), .next_page_token = {}};
  if (page->more)
    answer.next_page_token = MakePageToken(kListing, answer.operations.back().record.id);
  return answer;
}

absl::StatusOr<double> OperationHandler::WaitSeconds(const WaitOperationCall& call) {
  if (!call.timeout_seconds) return kMaxWaitSeconds;
  if (*call.timeout_seconds < 0) {
    return FaultsError(
        "REQUEST_INVALID",
        {{.field = "timeout",
          .description = absl::StrCat(*call.timeout_seconds, " seconds is negative")}});
  }
  return std::min(*call.timeout_seconds, kMaxWaitSeconds);
}

}  // namespace stepcast::server
