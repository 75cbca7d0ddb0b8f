// The command line of stepcastd: an argument a line.
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/app/server_options.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/text_mutator.h"

namespace stepcast::fuzz {

namespace {

class CommandLineTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    return {
        "--help", "--version",
        "--store\nmemory\n--threads=3\n--listen\n[::1]:0\n--http-listen\nnone\n--log-level=debug",
        "--store=sqlite\n--data-dir\nx\n--max-operations=1000\n--drain-delay=1.5\n--max-job-"
        "seconds=0.5\n--max-labels\n0"};
  }

  bool Run(std::string_view input) override {
    std::vector<std::string> arguments{"stepcastd"};
    for (size_t at = 0; at <= input.size();) {
      const size_t end = std::min(input.find('\n', at), input.size());
      // An argument ends where a program would see it end.
      arguments.emplace_back(std::string(input.substr(at, end - at)).c_str());
      at = end + 1;
    }
    std::vector<const char*> pointers;
    pointers.reserve(arguments.size());
    for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
    const auto parsed =
        server::ParseCommandLine(static_cast<int>(pointers.size()), pointers.data());
    if (!parsed.ok()) {
      DemandSoundRefusal(parsed.status());
      return false;
    }
    if (const auto* options = std::get_if<server::ServerOptions>(&*parsed)) DemandInRange(*options);
    return true;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateText(std::move(input), mutation);
  }

 private:
  static void DemandInRange(const server::ServerOptions& options) {
    Demand(!options.listen.empty(), "a server listens");
    Demand(options.threads > 0 && options.store_threads > 0 && options.queue_max >= 0 &&
               options.store_queue_max >= 0,
           "threads and queues are counts");
    Demand(options.max_job_seconds > 0 && options.drain_delay_seconds >= 0 &&
               options.drain_timeout_seconds >= 0,
           "times are times");
    Demand(options.max_message_bytes > 0 && options.max_profile_bytes > 0 &&
               options.max_pending_bytes > 0 && options.max_import_bytes > 0,
           "limits let something through");
    Demand(options.store != server::StoreKind::kSqlite || !options.data_dir.empty(),
           "a store on disk has a directory");
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<CommandLineTarget>(); }

}  // namespace stepcast::fuzz
