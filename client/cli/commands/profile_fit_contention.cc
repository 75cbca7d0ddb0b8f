// `profile fit-contention`: how much all-reduces and the computation beside them slow each other.
#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/characters.h"
#include "client/cli/texts/progress.h"
#include "client/cli/texts/table.h"

#include "stepcast/error_details.h"
#include "stepcast/json.h"

namespace stepcast::client {

namespace {

// The table of what was measured: lines of kind,threads,size_bytes,seconds, the columns in the
// order that the first line names. A kind is alone or overlapped, of all-reduces, or computation,
// of the same computation beside all-reduces with so many threads, 0: alone; its size is not read.
class ContentionTable {
 public:
  explicit ContentionTable(std::string_view text) : text_(text.data(), text.size()) {}

  absl::Status ReadInto(v1::FitContentionRequest& request) && {
    int number = 0;
    for (const absl::string_view raw : absl::StrSplit(text_, '\n')) {
      ++number;
      const absl::string_view line = absl::StripAsciiWhitespace(raw);
      if (line.empty() || line.front() == '#') continue;
      const std::vector<std::string> cells = absl::StrSplit(line, ',');
      const absl::Status status = columns_.empty() ? ReadColumns(cells) : ReadRow(cells, request);
      if (!status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
      }
    }
    if (columns_.empty()) return absl::InvalidArgumentError(absl::StrCat("no line names ", kNames));
    return AddSlowdowns(request);
  }

 private:
  static constexpr char kNames[] = "the columns kind, threads, size_bytes, seconds";

  absl::Status ReadColumns(const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i)
      columns_[absl::AsciiStrToLower(absl::StripAsciiWhitespace(cells[i]))] = i;
    for (const char* name : {"kind", "threads", "size_bytes", "seconds"}) {
      if (!columns_.contains(name))
        return absl::InvalidArgumentError(absl::StrCat("must name ", kNames, ", not only others"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadRow(const std::vector<std::string>& cells, v1::FitContentionRequest& request) {
    if (cells.size() < columns_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", cells.size(), " of ", columns_.size(), " columns"));
    }
    const auto cell = [&](const char* name) {
      return std::string(absl::StripAsciiWhitespace(cells[columns_.at(name)]));
    };
    const std::string kind = absl::AsciiStrToLower(cell("kind"));
    int32_t threads = 0;
    double seconds = 0;
    if (!absl::SimpleAtoi(cell("threads"), &threads))
      return absl::InvalidArgumentError(
          absl::StrCat(InQuotes(cell("threads")), " is not a number"));
    if (!absl::SimpleAtod(cell("seconds"), &seconds) || !(seconds > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(InQuotes(cell("seconds")), " is not a number above 0"));
    }
    if (kind == "computation") {
      computations_.emplace_back(threads, seconds);
      return absl::OkStatus();
    }
    if (kind != "alone" && kind != "overlapped") {
      return absl::InvalidArgumentError(
          absl::StrCat(InQuotes(kind), " is none of alone, overlapped, computation"));
    }
    int64_t bytes = 0;
    if (!absl::SimpleAtoi(cell("size_bytes"), &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(InQuotes(cell("size_bytes")), " is not a number of bytes"));
    }
    v1::FitContentionRequest::Transfer& transfer = *request.add_transfers();
    transfer.set_threads(threads);
    transfer.set_size_bytes(bytes);
    transfer.set_seconds(seconds);
    transfer.set_overlapped(kind == "overlapped");
    return absl::OkStatus();
  }

  // Over the median of those alone.
  absl::Status AddSlowdowns(v1::FitContentionRequest& request) const {
    std::vector<double> alone;
    for (const auto& [threads, seconds] : computations_) {
      if (threads == 0) alone.push_back(seconds);
    }
    if (alone.empty()) {
      return absl::InvalidArgumentError(
          "no line is of computation with 0 threads, which is how long it takes alone");
    }
    std::sort(alone.begin(), alone.end());
    const double median = (alone[(alone.size() - 1) / 2] + alone[alone.size() / 2]) / 2;
    for (const auto& [threads, seconds] : computations_) {
      v1::FitContentionRequest::Slowdown& slowdown = *request.add_slowdowns();
      slowdown.set_threads(threads);
      slowdown.set_slowdown(seconds / median);
    }
    return absl::OkStatus();
  }

  const absl::string_view text_;
  std::map<std::string, size_t> columns_;
  std::vector<std::pair<int32_t, double>> computations_;  // threads and seconds
};

class FitContentionCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "fit-contention",
        "Fit how all-reduces and the computation beside them slow each other, by the threads that "
        "carry them, for tune --contention");
    app->add_option(
           "FILE", path_,
           "Lines of kind,threads,size_bytes,seconds, the first naming the columns: kind "
           "is alone or overlapped, of an all-reduce that ran alone or beside computation "
           "for all of its time, or computation, of the same computation beside "
           "all-reduces (threads 0: alone); or the request as proto JSON; -: standard input")
        ->required()
        ->type_name("");
    AddValueOption<int32_t>(*app, "--workers", "N",
                            "Workers that met in the all-reduces (default 2)",
                            [this](int32_t count) { workers_ = count; });
    AddParsedOption(
        *app, "--latency", "TIME", "Of a message between them: 30us (default 0)",
        [](const std::string& text) { return ParseDuration(text); },
        [this](std::chrono::nanoseconds time) {
          latency_seconds_ = std::chrono::duration<double>(time).count();
        });
    AddValueOption<double>(*app, "--level", "P", "Probability of the intervals (default 0.95)",
                           [this](double level) { level_ = level; });
    app->add_option("--save", save_,
                    "Write the constants to FILE (- is standard output), for tune --contention")
        ->type_name("FILE");
    return app;
  }

  bool NeedsNoServer() const override { return true; }

  ExitCode Run(const Session& session) const override {
    if (!IsFile(path_)) return session.Misused(WhyNoFile(path_));
    v1::FitContentionRequest request;
    if (absl::Status status = Read(request); !status.ok()) {
      return session.Refused(GetErrorDetails(status).reason.empty()
                                 ? absl::InvalidArgumentError(absl::StrCat(
                                       InputAt(path_).Name(), ": ", std::string(status.message())))
                                 : status);
    }
    if (workers_) request.set_workers(*workers_);
    if (latency_seconds_) request.set_latency_seconds(*latency_seconds_);
    if (level_) request.set_confidence_level(*level_);
    const absl::StatusOr<v1::FitContentionResponse> response = [&] {
      const Progress progress(session.console, "fitting");
      return session.client.FitContention(request);
    }();
    if (!response.ok()) return session.Refused(response.status());
    return session.AnswerWithFile(save_, ToJson(response->contention()), ToJson(*response),
                                  [&] { return ContentionFitText(*response, save_); });
  }

 private:
  absl::Status Read(v1::FitContentionRequest& request) const {
    const absl::StatusOr<std::string> text =
        ReadTextInput(path_, "lines of kind,threads,size_bytes,seconds");
    if (!text.ok()) return text.status();
    const size_t first = text->find_first_not_of(" \t\r\n");
    if (first != std::string::npos && (*text)[first] == '{')
      return InFile(path_, FromJson(*text, request));
    return ContentionTable(*text).ReadInto(request);
  }

  std::string path_;
  std::optional<int32_t> workers_;
  std::optional<double> latency_seconds_;
  std::optional<double> level_;
  std::string save_;
};

}  // namespace

std::string ContentionFitText(const v1::FitContentionResponse& response, const std::string& path) {
  Table constants({{"", Table::Align::kLeft},
                   {"fitted"},
                   {absl::StrFormat("%g%% interval", 100 * response.alpha1_interval().level())}});
  const auto number = [](double value) { return absl::StrFormat("%.4g", value); };
  const auto add = [&](const char* name, double value, const v1::ConfidenceInterval& interval,
                       bool is_told) {
    constants.AddRow({name, number(value),
                      is_told
                          ? absl::StrCat(number(interval.lower()), " .. ", number(interval.upper()))
                          : "not told apart"});
  };
  const v1::AllReduce::Contention& contention = response.contention();
  add("alpha1, speed of computation", contention.alpha1(), response.alpha1_interval(), true);
  add("alpha2, taken by a thread", contention.alpha2(), response.alpha2_interval(), true);
  const auto add_rate = [&](const char* const(&names)[3],
                            const v1::AllReduce::Contention::TransferRate& rate,
                            const v1::FitContentionResponse::Rate& fitted) {
    add(names[0], rate.gamma1(), fitted.gamma1_interval(), fitted.is_told());
    add(names[1], rate.gamma2(), fitted.gamma2_interval(), fitted.is_told());
    add(names[2], rate.gamma3(), fitted.gamma3_interval(), fitted.is_told());
  };
  add_rate({"overlapped gamma1, bytes/s", "overlapped gamma2, bytes/s", "overlapped gamma3"},
           contention.overlapped(), response.overlapped());
  add_rate({"alone gamma1, bytes/s", "alone gamma2, bytes/s", "alone gamma3"}, contention.alone(),
           response.alone());
  std::string text = constants.Text();
  const auto append_error = [&](const char* kind, const v1::FitContentionResponse::Rate& rate) {
    absl::StrAppend(&text, "half of the transfers ", kind, " are within ",
                    PercentText(rate.relative_residual()), "; ", rate.outliers(),
                    rate.outliers() == 1 ? " is an outlier\n" : " are outliers\n");
  };
  append_error("beside computation", response.overlapped());
  append_error("alone", response.alone());
  if (response.slowdown_outliers() > 0)
    absl::StrAppend(&text, response.slowdown_outliers(), " of the computations are outliers\n");
  if (!response.unusable_because().empty()) {
    absl::StrAppend(&text, "warning: of no job: ", response.unusable_because(), "\n");
  } else if (!response.assumptions().guarantee_void_because().empty()) {
    absl::StrAppend(&text, "warning: LIBRA's bound is void: ",
                    response.assumptions().guarantee_void_because(), "\n");
  } else {
    absl::StrAppend(&text, "LIBRA's bound holds: what it assumes does at the threads measured\n");
  }
  if (path.empty()) {
    absl::StrAppend(&text, "--save FILE writes it for tune --contention FILE\n");
  } else {
    absl::StrAppend(&text, "use it with tune --contention ", path, "\n");
  }
  return text;
}

std::unique_ptr<Command> MakeFitContentionCommand() {
  return std::make_unique<FitContentionCommand>();
}

}  // namespace stepcast::client
