// UploadProfile: the first byte is the encoding, the rest the profile.
#include <string>
#include <utility>

#include "core/base/stop_check.h"
#include "server/base/clock.h"
#include "server/convert/profile_codec.h"
#include "server/handlers/profile_handler.h"
#include "server/handlers/request_checks.h"
#include "server/store/memory_stores.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/profile_forms.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/small_limits.h"
#include "tests/fuzz/small_profile.h"

namespace stepcast::fuzz {

namespace {

using server::ProfileEncoding;

ProfileEncoding EncodingOf(char first) {
  return kEncodings[static_cast<unsigned char>(first) % kEncodings.size()];
}

void DemandSameInEveryEncoding(const ProfileDraft& draft) {
  for (const ProfileEncoding encoding : kEncodings) {
    const absl::StatusOr<server::ProfileInput> read =
        server::ReadProfile(encoding, WriteProfile(encoding, draft));
    Demand(read.ok() && read->faults.empty() && read->draft == draft,
           "an accepted profile is the same in every encoding:", read.status().ToString());
  }
}

class ProfileUploadTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    for (size_t i = 0; i < kEncodings.size(); ++i) {
      for (const ProfileDraft& draft : {SmallDraft(), SmallRecordedDraft()})
        seeds.push_back(static_cast<char>(i) + WriteProfile(kEncodings[i], draft));
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    if (input.empty()) return false;
    const server::FakeClock clock;
    server::MemoryProfileStore store({}, clock);
    const server::ProfileHandler handler(store, SmallLimits());
    const auto uploaded =
        handler.Upload({.placement = {}, .encoding = EncodingOf(input[0]), .faults = {}},
                       std::string(input.substr(1)), NeverStop);
    if (!uploaded.ok()) {
      DemandSoundRefusal(uploaded.status());
      return false;
    }
    const auto found = handler.Get({.name = server::ProfileName(uploaded->summary.id),
                                    .view = server::ProfileView::kFull,
                                    .faults = {}});
    Demand(found.ok() && found->content && found->summary == uploaded->summary,
           "what was uploaded is found:", found.status().ToString());
    const absl::StatusOr<Profile> profile = Profile::Create(*found->content, SmallLimits());
    Demand(profile.ok(), "what is stored is valid:", profile.status().ToString());
    Demand(server::DigestOf(*profile) == uploaded->summary.digest, "what is stored has its digest");
    DemandSameInEveryEncoding(*found->content);
    return true;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    if (input.empty() || mutation.random.Below(16) == 0) return mutation.bytes(std::move(input));
    return input[0] + MutateProfile(EncodingOf(input[0]), input.substr(1), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<ProfileUploadTarget>(); }

}  // namespace stepcast::fuzz
