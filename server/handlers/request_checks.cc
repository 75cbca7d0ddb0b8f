#include "server/handlers/request_checks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/zoo/model_zoo.h"

namespace stepcast::server {

namespace {

constexpr std::string_view kProfiles = "profiles/";
constexpr size_t kMaxIdLength = 63;
constexpr size_t kDerivedDigits = 20;
constexpr std::string_view kIdRule =
    "1 to 63 characters of a-z, 0-9 and -, beginning with a letter and not ending with -";

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !absl::ascii_isxdigit(static_cast<unsigned char>(text[i])))
      return false;
  }
  return true;
}

std::string At(std::string_view prefix, std::string_view field) {
  return std::string(prefix).append(field);
}

}  // namespace

bool IsProfileId(std::string_view id) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_inner = [&](char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '-'; };
  return !id.empty() && id.size() <= kMaxIdLength && is_lower(id.front()) && id.back() != '-' &&
         std::all_of(id.begin(), id.end(), is_inner);
}

std::string DerivedProfileId(std::string_view digest) {
  return std::string("p-").append(digest.substr(0, kDerivedDigits));
}

std::string ProfileName(std::string_view id) { return std::string(kProfiles).append(id); }

absl::StatusOr<std::string> ProfileIdOf(std::string_view name, std::string_view field) {
  const bool in_collection = name.substr(0, kProfiles.size()) == kProfiles;
  if (in_collection && IsProfileId(name.substr(kProfiles.size())))
    return std::string(name.substr(kProfiles.size()));
  return FaultsError(
      "REQUEST_INVALID",
      {{.field = std::string(field),
        .description = name.empty() ? "a name `profiles/{profile}` is required"
                                    : Quoted(name)
                                          .append(" is not a name `profiles/{profile}`, with ")
                                          .append(kIdRule)}});
}

std::vector<Fault> FaultsOf(const ProfilePlacement& placement, std::string_view prefix) {
  std::vector<Fault> faults;
  if (!placement.profile_id.empty() && !IsProfileId(placement.profile_id)) {
    faults.push_back(
        {.field = At(prefix, "profile_id"),
         .description = Quoted(placement.profile_id).append(" is not ").append(kIdRule)});
  }
  if (!placement.request_id.empty() && !IsUuid(placement.request_id)) {
    faults.push_back({.field = At(prefix, "request_id"),
                      .description = Quoted(placement.request_id).append(" is no UUID")});
  }
  if (placement.allow_replace && placement.profile_id.empty()) {
    faults.push_back({.field = At(prefix, "profile_id"),
                      .description = "required with allow_replace: it says what is replaced"});
  }
  if (!placement.allow_replace && !placement.etag.empty()) {
    faults.push_back({.field = At(prefix, "etag"),
                      .description = Quoted(placement.etag).append(" needs allow_replace")});
  }
  return faults;
}

namespace {

constexpr size_t kMostNamed = 3;
// Texts are compared as far as an id may reach.
constexpr size_t kLettersCompared = 63;
// Shorter ones are held by too much.
constexpr size_t kMinHeld = 3;
constexpr int kWithItsModel = 8;

// Letters and digits alone, in lower case: "ResNet-50" as "resnet50".
std::string Plain(std::string_view text) {
  std::string plain;
  for (const char c : text.substr(0, kLettersCompared)) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte)) plain.push_back(static_cast<char>(absl::ascii_tolower(byte)));
  }
  return plain;
}

// Levenshtein's.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

bool Holds(std::string_view whole, std::string_view part) {
  return part.size() >= kMinHeld && whole.find(part) != std::string_view::npos;
}

// The lower the likelier; none: not like it. REQUIRES: both are plain.
std::optional<size_t> Distance(std::string_view asked, std::string_view other) {
  if (other.empty()) return std::nullopt;
  if (asked == other) return 0;
  if (Holds(other, asked) || Holds(asked, other)) return 1;
  const size_t most = std::max(asked.size(), other.size()) / 3;
  if (std::max(asked.size(), other.size()) - std::min(asked.size(), other.size()) > most)
    return std::nullopt;
  const size_t edits = EditDistance(asked, other);
  return edits <= most ? std::optional(1 + edits) : std::nullopt;
}

struct Candidate {
  size_t distance = 0;
  std::string name;
  std::string why;  // empty: its name is what is like it
};

std::optional<Candidate> CandidateOf(const std::string& asked, const ProfileSummary& profile) {
  std::optional<Candidate> best;
  const auto take = [&](std::optional<size_t> distance, std::string why) {
    if (distance && (!best || *distance < best->distance))
      best =
          Candidate{.distance = *distance, .name = ProfileName(profile.id), .why = std::move(why)};
  };
  take(Distance(asked, Plain(profile.id)), "");
  take(Distance(asked, Plain(profile.model)), "model " + Quoted(profile.model));
  // A text for people is long, and unlike a name by nature: only what it says counts.
  const std::optional<size_t> display = Distance(asked, Plain(profile.display_name));
  if (display && *display <= 1) take(display, Quoted(profile.display_name));
  return best;
}

// A model of the zoo, and what `stepcast profile zoo` needs to be told to make it.
struct ZooModel {
  std::string name;
  std::string arguments;
};

// The model of the zoo that an id stands for; none: of no model.
std::optional<ZooModel> ZooModelOf(const std::string& asked) {
  const std::string_view all_reduce = "allreduce";
  for (const std::string_view model : ZooModels()) {
    if (Plain(model) == asked)
      return ZooModel{.name = std::string(model), .arguments = std::string(model)};
  }
  for (const std::string_view model : ZooModels(ZooCommunication::kAllReduce)) {
    if (Plain(model) == asked || Plain(model).append(all_reduce) == asked)
      return ZooModel{.name = std::string(model),
                      .arguments = std::string(model).append(" --all-reduce")};
  }
  return std::nullopt;
}

std::vector<Candidate> CandidatesFor(const std::string& id, const std::string& asked,
                                     ProfileStore& store) {
  std::map<std::string, Candidate> by_name;
  const auto look_at = [&](const ListQuery& query) {
    const absl::StatusOr<ProfilePage> page = store.List(query);
    // An error that says less is still the answer.
    if (!page.ok()) return;
    for (const ProfileSummary& profile : page->profiles) {
      if (std::optional<Candidate> candidate = CandidateOf(asked, profile))
        by_name.try_emplace(candidate->name, *candidate);
    }
  };
  look_at({.filter = {.model = id}, .limit = kWithItsModel});
  if (const std::optional<ZooModel> model = ZooModelOf(asked); model && model->name != id)
    look_at({.filter = {.model = model->name}, .limit = kWithItsModel});
  look_at({.limit = kProfilesCompared});
  std::vector<Candidate> candidates;
  candidates.reserve(by_name.size());
  for (auto& [name, candidate] : by_name) candidates.push_back(std::move(candidate));
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  candidates.resize(std::min(candidates.size(), kMostNamed));
  return candidates;
}

}  // namespace

absl::Status NameSimilar(const absl::Status& status, const std::string& id, ProfileStore& store) {
  ErrorDetails details = DetailsOf(status);
  if (!absl::IsNotFound(status) || details.resource.name != ProfileName(id)) return status;
  const std::string asked = Plain(id);
  std::string message(status.message().data(), status.message().size());
  const std::vector<Candidate> candidates = CandidatesFor(id, asked, store);
  if (!candidates.empty()) {
    std::vector<std::string> names;
    std::vector<std::string> texts;
    for (const Candidate& candidate : candidates) {
      names.push_back(candidate.name);
      texts.push_back(candidate.why.empty()
                          ? candidate.name
                          : absl::StrCat(candidate.name, " (", candidate.why, ")"));
    }
    absl::StrAppend(&message, "; like it: ", absl::StrJoin(texts, ", "));
    details.metadata.insert_or_assign("similar", absl::StrJoin(names, " "));
  }
  if (std::optional<ZooModel> model = ZooModelOf(asked)) {
    absl::StrAppend(&message, "; ", model->name,
                    " is a model of the zoo, which ImportProfile (stepcast profile zoo ",
                    model->arguments, ") makes a profile of");
    details.metadata.insert_or_assign("zoo_model", std::move(model->name));
  }
  return MakeError(status.code(), message, std::move(details));
}

absl::Status WithFaults(std::vector<Fault> faults, const absl::Status& status) {
  if (faults.empty()) return status;
  ErrorDetails details = DetailsOf(status);
  if (details.faults.empty()) details = {.reason = "REQUEST_INVALID"};
  const size_t own = faults.size();
  for (Fault& fault : details.faults) {
    const bool known =
        std::any_of(faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(own),
                    [&](const Fault& other) { return other.field == fault.field; });
    if (!known) faults.push_back(std::move(fault));
  }
  const Fault& first = faults.front();
  std::string message = absl::StrCat(first.field, ": ", first.description);
  const size_t others = faults.size() - 1 + details.faults_left_out;
  if (others > 0) absl::StrAppend(&message, " (and ", others, " more)");
  details.faults = std::move(faults);
  return MakeError(absl::StatusCode::kInvalidArgument, message, std::move(details));
}

std::vector<Fault> FaultsUnder(const std::string& prefix, std::vector<Fault> faults) {
  for (Fault& fault : faults) fault.field = absl::StrCat(prefix, ".", fault.field);
  return faults;
}

}  // namespace stepcast::server
