// The file of those who are known to the server.
#include <string>
#include <utility>

#include "core/base/error.h"
#include "server/security/principals.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/text_mutator.h"

namespace stepcast::fuzz {

namespace {

using server::Principals;

// The plain words after `token: ` that are long enough for a token and stand nowhere else.
std::vector<std::string> TokensIn(const std::string& text) {
  constexpr std::string_view kKey = "token: ";
  std::vector<std::string> tokens;
  for (size_t at = text.find(kKey); at != std::string::npos; at = text.find(kKey, at)) {
    at += kKey.size();
    const std::string word =
        text.substr(at, text.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz", at) - at);
    if (word.size() >= Principals::kMinTokenBytes && text.find(word) == at &&
        text.rfind(word) == at)
      tokens.push_back(word);
  }
  return tokens;
}

void DemandSecrecy(const absl::Status& status, const std::string& text) {
  const std::string told = status.ToString();
  for (const std::string& token : TokensIn(text))
    Demand(told.find(token) == std::string::npos, "no fault quotes a token:", told);
}

class PrincipalsTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    return {"- {name: laptop, role: reader, token: 0123456789abcdef}\n",
            "- name: scheduler\n  role: writer\n  sha256: "
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"
            "- {name: ci, role: admin, certificate: ci.example.com}\n- {name: ci, role: admin, "
            "token: abcdefghijklmnop}\n"};
  }

  bool Run(std::string_view input) override {
    const std::string text(input);
    const absl::StatusOr<Principals> parsed = Principals::Parse(text);
    if (!parsed.ok()) {
      DemandSoundRefusal(parsed.status());
      DemandSecrecy(parsed.status(), text);
      return false;
    }
    Demand(parsed->size() <= Principals::kMaxEntries, "there are no more entries than the limit");
    Demand(parsed->ByToken("") == nullptr && parsed->ByCertificateName("") == nullptr,
           "who shows nothing is nobody");
    return true;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateText(std::move(input), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<PrincipalsTarget>(); }

}  // namespace stepcast::fuzz
