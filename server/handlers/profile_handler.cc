#include "server/handlers/profile_handler.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/importing/file_kind.h"
#include "server/convert/profile_codec.h"
#include "server/convert/sha256.h"
#include "server/convert/utf8.h"
#include "server/handlers/listing.h"
#include "server/handlers/request_checks.h"

namespace stepcast::server {

namespace {

ProfileSummary SummaryOf(const Profile& profile, const EncodedProfile& encoded,
                         const std::string& id, const std::string& owner) {
  return {.id = id,
          .digest = encoded.digest,
          .display_name = profile.display_name(),
          .model = profile.model(),
          .framework = profile.framework(),
          .owner = owner,
          .labels = profile.labels(),
          .batch_size = profile.batch_size(),
          .parameter_servers = profile.parameter_servers(),
          .operation_count = static_cast<int32_t>(profile.operations().size()),
          .step_count = static_cast<int32_t>(profile.steps().size()),
          .size_bytes = static_cast<int64_t>(encoded.content.size())};
}

// The id that what is imported has by default: a model of the zoo its name, as far as an id can say
// it, and how its workers meet if not at parameter servers. Empty: none of its own.
std::string OwnNameOf(const ImportProfileCall& call) {
  const auto* zoo = std::get_if<ZooImport>(&call.format);
  if (zoo == nullptr) return "";
  std::string name = zoo->model;
  std::replace(name.begin(), name.end(), '_', '-');
  if (zoo->options.communication == ZooCommunication::kAllReduce) name.append("-all-reduce");
  return name;
}

// The other one of two ids that a profile may have by default: between looking and storing another
// took the first, or the request that is repeated chose before that was so.
bool WentToAnotherId(const absl::Status& put) {
  const std::string reason = DetailsOf(put).reason;
  return reason == "PROFILE_EXISTS" || reason == "REQUEST_ID_REUSED";
}

// Error about an upload that is no profile; where it may be one, what is wrong says more.
absl::Status SayWhatItLooksLike(const absl::Status& malformed, const std::string& bytes) {
  const FileKind kind = KindOf(std::string_view(bytes).substr(0, kKindBytes));
  if (kind == FileKind::kProfileJson || kind == FileKind::kProfileText ||
      kind == FileKind::kBinary || kind == FileKind::kEmpty)
    return malformed;
  ErrorDetails details = DetailsOf(malformed);
  if (details.faults.empty()) return malformed;
  std::string& description = details.faults.front().description;
  // The reader of profiles may have said it already.
  if (description.find("it looks like ") == std::string::npos)
    description.append("; they look like ").append(TextOf(kind));
  description.append("; ").append(kReadableFormats);
  return FaultsError(details.reason, std::move(details.faults));
}

// A field of a profile: its name on the wire, and what takes it from another draft.
struct DraftField {
  std::string_view name;
  void (*take)(ProfileDraft& to, const ProfileDraft& from);
};

template <auto member>
void TakeMember(ProfileDraft& to, const ProfileDraft& from) {
  to.*member = from.*member;
}

constexpr DraftField kDraftFields[] = {
    {"display_name", TakeMember<&ProfileDraft::display_name>},
    {"model", TakeMember<&ProfileDraft::model>},
    {"framework", TakeMember<&ProfileDraft::framework>},
    {"labels", TakeMember<&ProfileDraft::labels>},
    {"batch_size", TakeMember<&ProfileDraft::batch_size>},
    {"platform", TakeMember<&ProfileDraft::platform>},
    {"parameter_servers", TakeMember<&ProfileDraft::parameter_servers>},
    {"operations", TakeMember<&ProfileDraft::operations>},
    {"steps", TakeMember<&ProfileDraft::steps>},
    {"buckets", TakeMember<&ProfileDraft::buckets>},
    {"device_idle_fraction", TakeMember<&ProfileDraft::device_idle_fraction>},
    {"recording", TakeMember<&ProfileDraft::recording>},
};

bool Takes(const UpdateProfileCall& call, std::string_view field) {
  return call.fields.empty() || absl::c_linear_search(call.fields, field);
}

// The digest of the names and labels that a replacement sets, which its content's digest leaves
// out. Null: it does not set them. Nothing set: empty.
std::string DigestOfNames(const std::string* display_name,
                          const std::map<std::string, std::string>* labels) {
  std::string text;
  if (display_name != nullptr) absl::StrAppend(&text, display_name->size(), *display_name);
  if (labels == nullptr) return text.empty() ? text : Sha256Hex(text);
  for (const auto& [key, value] : *labels)
    absl::StrAppend(&text, ",", key.size(), key, value.size(), value);
  return Sha256Hex(absl::StrCat("labels", text));
}

// Between reading what is stored and replacing it, another may have replaced it.
constexpr int kUpdateAttempts = 5;

// About what a summary takes on the wire.
size_t WireBytes(const ProfileSummary& summary) {
  constexpr size_t kFixed = 200;
  constexpr size_t kPerLabel = 8;
  size_t bytes = kFixed + summary.id.size() + summary.display_name.size() + summary.model.size() +
                 summary.framework.size() + summary.owner.size();
  for (const auto& [key, value] : summary.labels) bytes += kPerLabel + key.size() + value.size();
  return bytes;
}

// The number of a page's profiles that fit into a message: at least one.
size_t CountThatFits(const std::vector<ProfileSummary>& profiles) {
  size_t bytes = 0;
  size_t count = 0;
  while (count < profiles.size()) {
    bytes += WireBytes(profiles[count]);
    if (count > 0 && bytes > ProfileHandler::kMaxPageBytes) break;
    ++count;
  }
  return count;
}

}  // namespace

ProfileHandler::ProfileHandler(ProfileStore& store, const ProfileLimits& limits)
    : store_(store), limits_(limits) {}

absl::StatusOr<ProfileAnswer> ProfileHandler::Create(CreateProfileCall call, StopCheck stop) const {
  std::vector<Fault> faults = FaultsOf(call.placement, "");
  if (!call.profile) {
    faults.push_back({.field = "profile", .description = "a profile is required"});
    return FaultsError("REQUEST_INVALID", std::move(faults));
  }
  for (Fault& fault : FaultsUnder("profile", std::move(call.profile->faults)))
    faults.push_back(std::move(fault));
  const absl::StatusOr<Profile> profile = Profile::Create(std::move(call.profile->draft), limits_);
  const absl::Status checked =
      WithFaults(std::move(faults), UnderPath("profile", profile.status()));
  if (!checked.ok()) return checked;
  return Store(*profile, call.placement, "", stop);
}

absl::StatusOr<std::string> ProfileHandler::Complete(const UpdateProfileCall& call,
                                                     const std::string& id,
                                                     ProfileDraft& draft) const {
  const absl::StatusOr<StoredProfile> stored = store_.Get(id);
  if (absl::IsNotFound(stored.status()) && call.allow_missing) return std::string();
  if (!stored.ok()) return NameSimilar(stored.status(), id, store_);
  const absl::StatusOr<Profile> profile = DecodeProfile(stored->content);
  if (!profile.ok()) return profile.status();
  for (const DraftField& field : kDraftFields) {
    if (!Takes(call, field.name)) field.take(draft, profile->content());
  }
  return stored->summary.etag;
}

absl::StatusOr<ProfileAnswer> ProfileHandler::Update(UpdateProfileCall call, StopCheck stop) const {
  std::vector<Fault> faults = FaultsOf(call.placement, "");
  faults.insert(faults.end(), call.faults.begin(), call.faults.end());
  if (!call.profile) {
    faults.push_back({.field = "profile", .description = "a profile is required"});
    return FaultsError("REQUEST_INVALID", std::move(faults));
  }
  const absl::StatusOr<std::string> id = ProfileIdOf(call.name, "profile.name");
  if (!id.ok() || !call.faults.empty()) return WithFaults(std::move(faults), id.status());
  for (Fault& fault : FaultsUnder("profile", std::move(call.profile->faults)))
    faults.push_back(std::move(fault));
  ProfilePlacement placement = call.placement;
  placement.profile_id = *id;
  placement.allow_replace = true;
  placement.allow_missing = call.allow_missing;
  const ProfileDraft& sent = call.profile->draft;
  placement.says = DigestOfNames(Takes(call, "display_name") ? &sent.display_name : nullptr,
                                 Takes(call, "labels") ? &sent.labels : nullptr);
  const bool takes_all =
      std::all_of(std::begin(kDraftFields), std::end(kDraftFields),
                  [&](const DraftField& field) { return Takes(call, field.name); });
  for (int attempt = 1;; ++attempt) {
    placement.etag = call.etag;
    ProfileDraft draft = takes_all ? std::move(call.profile->draft) : call.profile->draft;
    if (!takes_all) {
      absl::StatusOr<std::string> read = Complete(call, *id, draft);
      if (!read.ok()) return read.status();
      if (call.etag.empty()) placement.etag = *std::move(read);
    }
    const absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits_);
    const absl::Status checked = WithFaults(faults, UnderPath("profile", profile.status()));
    if (!checked.ok()) return checked;
    absl::StatusOr<ProfileAnswer> answer = Store(*profile, placement, "", stop);
    const bool is_raced = absl::IsAborted(answer.status()) && !takes_all && call.etag.empty();
    if (!is_raced || attempt == kUpdateAttempts) return answer;
  }
}

absl::StatusOr<ProfileAnswer> ProfileHandler::Upload(const UploadProfileCall& call,
                                                     std::string bytes, StopCheck stop) const {
  std::vector<Fault> faults = FaultsOf(call.placement, "header.");
  faults.insert(faults.end(), call.faults.begin(), call.faults.end());
  // In an unknown encoding the bytes mean nothing.
  if (!call.faults.empty()) return FaultsError("REQUEST_INVALID", std::move(faults));
  absl::StatusOr<ProfileInput> input = ReadProfile(call.encoding, bytes);
  if (!input.ok()) return WithFaults(std::move(faults), SayWhatItLooksLike(input.status(), bytes));
  std::string().swap(bytes);
  for (Fault& fault : input->faults) faults.push_back(std::move(fault));
  const absl::StatusOr<Profile> profile = Profile::Create(std::move(input->draft), limits_);
  const absl::Status checked = WithFaults(std::move(faults), profile.status());
  if (!checked.ok()) return checked;
  return Store(*profile, call.placement, "", stop);
}

absl::StatusOr<ImportProfileAnswer> ProfileHandler::Import(const ImportProfileCall& call,
                                                           const ImportBytes& bytes,
                                                           StopCheck stop) const {
  std::vector<Fault> faults = FaultsOf(call.placement, "header.");
  faults.insert(faults.end(), call.faults.begin(), call.faults.end());
  absl::StatusOr<ImportedFormat> made = ImportFormat(call, bytes, limits_, stop);
  if (!made.ok()) return WithFaults(std::move(faults), made.status());
  ImportedProfile* const imported = &made->imported;
  ProfileDraft draft = imported->profile.content();
  draft.display_name = call.display_name.empty() ? draft.model : call.display_name;
  draft.labels = call.labels;
  const absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits_);
  const absl::Status checked = WithFaults(std::move(faults), UnderPath("header", profile.status()));
  if (!checked.ok()) return checked;
  absl::StatusOr<ProfileAnswer> stored = Store(*profile, call.placement, OwnNameOf(call), stop);
  if (!stored.ok()) return stored.status();
  if (call.placement.validate_only) stored->content = profile->content();
  return ImportProfileAnswer{.profile = *std::move(stored),
                             .notes = std::move(imported->notes),
                             .recording = std::move(made->recording)};
}

absl::StatusOr<std::string> ProfileHandler::DefaultId(const std::string& own_name,
                                                      const std::string& digest) const {
  std::string derived = DerivedProfileId(digest);
  if (own_name.empty()) return derived;
  // The same content is the same profile, so it stays where it is.
  const absl::StatusOr<ProfileSummary> there = store_.GetSummary(derived);
  if (there.ok() && there->digest == digest) return derived;
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  const absl::StatusOr<ProfileSummary> named = store_.GetSummary(own_name);
  if (!named.ok() && !absl::IsNotFound(named.status())) return named.status();
  return named.ok() && named->digest != digest ? derived : own_name;
}

absl::StatusOr<ProfileAnswer> ProfileHandler::Store(const Profile& profile,
                                                    const ProfilePlacement& placement,
                                                    const std::string& own_name,
                                                    StopCheck stop) const {
  if (std::vector<Fault> broken = FindBrokenText(profile.content()); !broken.empty())
    return FaultsError("PROFILE_INVALID", std::move(broken));
  EncodedProfile encoded = EncodeProfile(profile);
  const absl::StatusOr<std::string> id =
      placement.profile_id.empty() ? DefaultId(own_name, encoded.digest) : placement.profile_id;
  if (!id.ok()) return id.status();
  StoredProfile stored{.summary = SummaryOf(profile, encoded, *id, placement.owner),
                       .content = std::move(encoded.content)};
  if (const absl::Status go_on = stop(); !go_on.ok()) return go_on;
  if (placement.allow_replace) return Replace(stored, placement);
  if (placement.validate_only) return OnlyValidate(stored, {});
  absl::StatusOr<ProfileSummary> summary = store_.Put(stored, placement.request_id);
  if (placement.profile_id.empty() && !own_name.empty() && WentToAnotherId(summary.status())) {
    stored.summary.id = *id == own_name ? DerivedProfileId(stored.summary.digest) : own_name;
    const absl::StatusOr<ProfileSummary> other = store_.Put(stored, placement.request_id);
    if (other.ok()) summary = other;
  }
  if (!summary.ok()) return summary.status();
  return ProfileAnswer{.summary = *std::move(summary), .content = std::nullopt};
}

absl::StatusOr<ProfileAnswer> ProfileHandler::Replace(const StoredProfile& profile,
                                                      const ProfilePlacement& placement) const {
  // An upload sets both, though nothing of it says so.
  const std::string names = DigestOfNames(&profile.summary.display_name, &profile.summary.labels);
  const ReplaceTerms terms{.etag = placement.etag,
                           .allow_missing = placement.allow_missing,
                           .request_id = placement.request_id,
                           .says = placement.says.value_or(names)};
  if (placement.validate_only) return OnlyValidate(profile, {.replace = terms});
  absl::StatusOr<ProfileSummary> summary = store_.Replace(profile, terms);
  if (!summary.ok()) return NameSimilar(summary.status(), profile.summary.id, store_);
  return ProfileAnswer{.summary = *std::move(summary), .content = std::nullopt};
}

absl::StatusOr<ProfileAnswer> ProfileHandler::OnlyValidate(const StoredProfile& profile,
                                                           const WriteTerms& terms) const {
  ProfileAnswer answer{.summary = profile.summary, .content = std::nullopt};
  absl::StatusOr<ProfileSummary> found = store_.GetSummary(answer.summary.id);
  if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  std::optional<ProfileSummary> there;
  if (found.ok()) there = *std::move(found);
  const absl::StatusOr<bool> is_new = IsToBeWritten(answer.summary, there, terms);
  if (!is_new.ok()) return NameSimilar(is_new.status(), answer.summary.id, store_);
  if (!*is_new) {
    answer.summary = *std::move(there);
  } else if (there) {
    answer.summary.owner = there->owner;
  }
  return answer;
}

absl::StatusOr<ProfileAnswer> ProfileHandler::Get(const GetProfileCall& call) const {
  const absl::StatusOr<std::string> id = ProfileIdOf(call.name, "name");
  const absl::Status checked = WithFaults(call.faults, id.status());
  if (!checked.ok()) return checked;
  if (call.view == ProfileView::kBasic) {
    absl::StatusOr<ProfileSummary> summary = store_.GetSummary(*id);
    if (!summary.ok()) return NameSimilar(summary.status(), *id, store_);
    return ProfileAnswer{.summary = *std::move(summary), .content = std::nullopt};
  }
  absl::StatusOr<StoredProfile> stored = store_.Get(*id);
  if (!stored.ok()) return NameSimilar(stored.status(), *id, store_);
  const absl::StatusOr<Profile> profile = DecodeProfile(stored->content);
  if (!profile.ok()) return profile.status();
  return ProfileAnswer{.summary = std::move(stored->summary), .content = profile->content()};
}

absl::StatusOr<ListProfilesAnswer> ProfileHandler::List(const ListProfilesCall& call) const {
  std::vector<Fault> faults = call.faults;
  if (call.page_size < 0)
    faults.push_back(
        {.field = "page_size", .description = absl::StrCat(call.page_size, " is negative")});
  if (call.view == ProfileView::kFull)
    faults.push_back(
        {.field = "view",
         .description = "FULL: a page of whole profiles would not fit into a message"});
  absl::StatusOr<ProfileFilter> filter = ParseProfileFilter(call.filter);
  absl::StatusOr<std::string> after = ReadPageToken(call.page_token, call.filter);
  for (const absl::Status& status : {filter.status(), after.status()}) {
    for (Fault& fault : DetailsOf(status).faults) faults.push_back(std::move(fault));
  }
  if (!faults.empty()) return FaultsError("REQUEST_INVALID", std::move(faults));
  const int32_t size =
      call.page_size == 0 ? kDefaultPageSize : std::min(call.page_size, kMaxPageSize);
  absl::StatusOr<ProfilePage> page =
      store_.List({.filter = *std::move(filter), .after = *std::move(after), .limit = size});
  if (!page.ok()) return page.status();
  const size_t fits = CountThatFits(page->profiles);
  const bool more = page->more || fits < page->profiles.size();
  page->profiles.resize(fits);
  ListProfilesAnswer answer{.profiles = std::move(page->profiles)};
  if (more) answer.next_page_token = MakePageToken(call.filter, answer.profiles.back().id);
  return answer;
}

absl::Status ProfileHandler::Delete(const DeleteProfileCall& call) const {
  const absl::StatusOr<std::string> id = ProfileIdOf(call.name, "name");
  return id.ok() ? NameSimilar(store_.Delete(*id, call.etag), *id, store_) : id.status();
}

}  // namespace stepcast::server
