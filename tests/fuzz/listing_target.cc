// The choice of the profiles that are listed: a filter, then, after a line feed, a page token.
#include <map>
#include <string>
#include <utility>

#include "server/base/clock.h"
#include "server/handlers/listing.h"
#include "server/handlers/profile_handler.h"
#include "server/handlers/request_checks.h"
#include "server/store/memory_stores.h"
#include "server/store/profile_store.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/small_limits.h"
#include "tests/fuzz/text_mutator.h"

namespace stepcast::fuzz {

namespace {

// A profile the filter takes.
server::ProfileSummary TakenBy(const server::ProfileFilter& filter) {
  server::ProfileSummary summary{.id = "p", .model = filter.model.value_or("m")};
  for (const std::string& key : filter.present_labels) summary.labels.emplace(key, "v");
  for (const auto& [key, value] : filter.labels) summary.labels.insert_or_assign(key, value);
  return summary;
}

std::string InQuotes(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string Written(const server::ProfileFilter& filter) {
  std::string text;
  const auto add = [&](const std::string& term) { text += (text.empty() ? "" : " AND ") + term; };
  if (filter.model) add("model = " + InQuotes(*filter.model));
  for (const auto& [key, value] : filter.labels)
    add("labels." + InQuotes(key) + " = " + InQuotes(value));
  for (const std::string& key : filter.present_labels) add("labels:" + InQuotes(key));
  return text;
}

void DemandFilterIsRead(const server::ProfileFilter& filter) {
  Demand(server::Matches(filter, TakenBy(filter)), "a filter takes what it describes");
  const std::string text = Written(filter);
  if (text.size() > server::kMaxFilterBytes) return;
  const absl::StatusOr<server::ProfileFilter> again = server::ParseProfileFilter(text);
  Demand(again.ok() && again->model == filter.model && again->labels == filter.labels &&
             again->present_labels == filter.present_labels,
         "a filter that is written out is the same one:", text);
}

class ListingTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    const std::string filter = "model=\"tiny \\\"x\\\"\" AND labels.team=vision AND labels:\"k.e\"";
    return {"\n", "\n" + server::MakePageToken("", "alexnet-64"),
            filter + "\n" + server::MakePageToken(filter, "p1"), "labels:a\n"};
  }

  bool Run(std::string_view input) override {
    const size_t end = std::min(input.find('\n'), input.size());
    const std::string_view filter_text = input.substr(0, end);
    const std::string_view token = input.substr(std::min(end + 1, input.size()));
    const absl::StatusOr<server::ProfileFilter> filter = server::ParseProfileFilter(filter_text);
    if (filter.ok()) DemandFilterIsRead(*filter);
    const absl::StatusOr<std::string> after = server::ReadPageToken(token, filter_text);
    if (after.ok() && !token.empty()) {
      const absl::StatusOr<std::string> again =
          server::ReadPageToken(server::MakePageToken(filter_text, *after), filter_text);
      Demand(server::IsProfileId(*after) && again.ok() && *again == *after,
             "a token leads to the same place again:", *after);
    }
    const server::FakeClock clock;
    server::MemoryProfileStore store({}, clock);
    const auto listed =
        server::ProfileHandler(store, SmallLimits())
            .List({.page_token = std::string(token), .filter = std::string(filter_text)});
    Demand(listed.ok() == (filter.ok() && after.ok()),
           "a listing takes what its parts take:", listed.status().ToString());
    if (!listed.ok()) DemandSoundRefusal(listed.status());
    return listed.ok();
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateText(std::move(input), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<ListingTarget>(); }

}  // namespace stepcast::fuzz
