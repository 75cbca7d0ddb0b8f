// The configuration file of stepcastd.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <variant>

#include "server/app/server_options.h"
#include "server/app/settings.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/text_mutator.h"

namespace stepcast::fuzz {

namespace {

// A file of this process, gone when that ends.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::string folder = (std::filesystem::temp_directory_path() / "stepcast-fuzz-XXXXXX").string();
    Demand(mkdtemp(folder.data()) != nullptr, "there is a temporary folder:", folder);
    path_ = folder + "/stepcast.yaml";
  }
  ~TemporaryFile() { std::filesystem::remove_all(std::filesystem::path(path_).parent_path()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& Hold(std::string_view text) const {
    std::ofstream file(path_, std::ios::binary);
    file << text << std::flush;
    Demand(file.good(), "a file can be written:", path_);
    return path_;
  }

 private:
  std::string path_;
};

class ConfigurationTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    return {"", "# nothing\n",
            "store: memory\nthreads: 3\nlisten: \"[::1]:0\"\nhttp-listen: none\n",
            "max-operations: 1000\nlog-level: debug\nlog-format: json\ndata-dir: "
            "/tmp/x\ndrain-delay: 1.5\n"};
  }

  bool Run(std::string_view input) override {
    const std::string& path = file_.Hold(input);
    const auto read = server::ReadConfigFile(path);
    const auto shown = Shown(path);
    if (!read.ok()) DemandSoundRefusal(read.status());
    if (!shown.ok()) {
      DemandSoundRefusal(shown.status());
      return false;
    }
    Demand(read.ok(), "what is no configuration configures nothing:", read.status().ToString());
    const auto again = Shown(file_.Hold(*shown));
    Demand(again.ok() && WithoutSources(*again) == WithoutSources(*shown),
           "a configuration that is printed configures the same:", *shown);
    return true;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateText(std::move(input), mutation);
  }

 private:
  static absl::StatusOr<std::string> Shown(const std::string& path) {
    const char* const arguments[] = {"stepcastd", "--config", path.c_str(), "--print-config"};
    auto parsed = server::ParseCommandLine(static_cast<int>(std::size(arguments)), arguments);
    if (!parsed.ok()) return parsed.status();
    return std::get<server::PrintText>(*parsed).text;
  }

  // Each line up to its remark.
  static std::string WithoutSources(const std::string& text) {
    std::string rest;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      rest += line.substr(0, line.find(" #")) + "\n";
      at = end + 1;
    }
    return rest;
  }

  const TemporaryFile file_;
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<ConfigurationTarget>(); }

}  // namespace stepcast::fuzz
