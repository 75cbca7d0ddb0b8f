// The bytes that a store returns for a profile's content.
#include <string>
#include <utility>

#include "server/convert/profile_codec.h"
#include "stepcast/v1/profile.pb.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/small_profile.h"

namespace stepcast::fuzz {

namespace {

class StoredProfileTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    return {server::EncodeProfile(Profile::Create(SmallDraft()).value()).content};
  }

  bool Run(std::string_view input) override {
    const absl::StatusOr<Profile> read = server::DecodeProfile(input);
    if (!read.ok()) {
      DemandSoundRefusal(read.status(), {absl::StatusCode::kDataLoss});
      return false;
    }
    const server::EncodedProfile encoded = server::EncodeProfile(*read);
    const absl::StatusOr<Profile> again = server::DecodeProfile(encoded.content);
    Demand(again.ok() && again->content() == read->content(),
           "what is read can be stored again:", again.status().ToString());
    Demand(server::EncodeProfile(*again).content == encoded.content,
           "a profile has one stored form");
    Demand(server::DigestOf(*read) == encoded.digest, "a profile has one digest");
    return true;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateSerialised(v1::Profile::default_instance(), std::move(input), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<StoredProfileTarget>(); }

}  // namespace stepcast::fuzz
