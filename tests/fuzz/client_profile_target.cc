// A profile's file as the client reads it: the first byte is the encoding, 0 for finding it out.
#include <string>
#include <utility>

#include "server/convert/profile_codec.h"
#include "server/convert/utf8.h"
#include "stepcast/json.h"
#include "stepcast/profile_encoding.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/profile_forms.h"
#include "tests/fuzz/small_profile.h"

namespace stepcast::fuzz {

namespace {

constexpr int kChoices = 4;

using Encoding = v1::UploadProfileRequest::Encoding;

Encoding EncodingOf(char first, std::string_view bytes) {
  const auto encoding = static_cast<Encoding>(static_cast<unsigned char>(first) % kChoices);
  return encoding == v1::UploadProfileRequest::ENCODING_UNSPECIFIED
             ? client::DetectProfileEncoding(bytes)
             : encoding;
}

server::ProfileEncoding OfServer(Encoding encoding) {
  return kEncodings[static_cast<size_t>(encoding) - 1];
}

v1::Profile Rewritten(const v1::Profile& profile) {
  const absl::StatusOr<v1::Profile> read =
      client::ParseProfile(client::ToJson(profile), v1::UploadProfileRequest::JSON);
  Demand(read.ok(), "a profile that is written out can be read:", read.status().ToString());
  return *read;
}

class ClientProfileTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    for (size_t i = 0; i < kEncodings.size(); ++i) {
      const std::string written = WriteProfile(kEncodings[i], SmallDraft());
      seeds.push_back(std::string(1, '\0') + written);
      seeds.push_back(static_cast<char>(i + 1) + written);
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    if (input.empty()) return false;
    const std::string_view bytes = input.substr(1);
    const Encoding encoding = EncodingOf(input[0], bytes);
    const absl::StatusOr<v1::Profile> profile = client::ParseProfile(bytes, encoding);
    const absl::StatusOr<server::ProfileInput> served =
        server::ReadProfile(OfServer(encoding), bytes);
    if (!profile.ok()) {
      Demand(profile.status().code() == absl::StatusCode::kInvalidArgument &&
                 !profile.status().message().empty(),
             "a refusal says why");
      const bool is_text = served.ok() && server::FindBrokenText(served->draft).empty();
      // Of a profile's output fields, the service looks at none.
      Demand(!is_text || profile.status().message().find("UTF-8") != absl::string_view::npos,
             "what the service reads, the client reads:", profile.status().ToString());
      return false;
    }
    const v1::Profile again = Rewritten(*profile);
    Demand(again.operations_size() == profile->operations_size() &&
               again.steps_size() == profile->steps_size(),
           "what is written out is all");
    // Not yet the first time: JSON has no -0.
    Demand(client::ToJson(Rewritten(again)) == client::ToJson(again),
           "a profile that is written out is the same");
    return true;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    if (input.empty() || mutation.random.Below(16) == 0) return mutation.bytes(std::move(input));
    const std::string bytes = input.substr(1);
    return input[0] + MutateProfile(OfServer(EncodingOf(input[0], bytes)), bytes, mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<ClientProfileTarget>(); }

}  // namespace stepcast::fuzz
