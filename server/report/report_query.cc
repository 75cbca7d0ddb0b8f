#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "server/report/report.h"

namespace stepcast::server {

namespace {

constexpr size_t kMaxCounts = 64;
constexpr int32_t kMaxWorkers = 4096;
constexpr int32_t kDefaultMaxWorkers = 16;
constexpr size_t kMaxIdBytes = 63;

absl::string_view AbslOf(std::string_view text) { return {text.data(), text.size()}; }

// Form of an id, as far as a path can tell; the service says whether there is one.
bool MayBeId(std::string_view id) {
  const auto is_of_ids = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !id.empty() && id.size() <= kMaxIdBytes && std::all_of(id.begin(), id.end(), is_of_ids);
}

// Nothing where an escape is none.
std::optional<std::string> Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const auto digit = [&](size_t at) {
      return at < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[at]));
    };
    if (!digit(i + 1) || !digit(i + 2)) return std::nullopt;
    plain += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return plain;
}

std::optional<int32_t> CountIn(absl::string_view text) {
  int32_t count = 0;
  const bool is_digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  if (!is_digits || !absl::SimpleAtoi(text, &count) || count < 1 || count > kMaxWorkers)
    return std::nullopt;
  return count;
}

// Empty for what is no list.
std::vector<int32_t> CountsIn(const std::string& text) {
  std::vector<int32_t> counts;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    const std::optional<int32_t> first = CountIn(ends.front());
    const std::optional<int32_t> last = CountIn(ends.back());
    if (!first || !last || *last < *first) return {};
    if (counts.size() + static_cast<size_t>(*last - *first) >= kMaxCounts) return {};
    for (int32_t count = *first; count <= *last; ++count) counts.push_back(count);
  }
  return counts;
}

ReportSubject SubjectOf(std::string_view id) {
  ReportSubject subject;
  subject.question.set_profile(absl::StrCat("profiles/", AbslOf(id)));
  return subject;
}

// The fields of a query, read one by one into a request.
class QueryReader {
 public:
  explicit QueryReader(ReportRequest& request) : request_(request) {}

  void Read(absl::string_view field) {
    const std::vector<absl::string_view> both = absl::StrSplit(field, absl::MaxSplits('=', 1));
    const std::string name(both.front());
    const std::optional<std::string> value =
        both.size() < 2 ? std::nullopt : Unescaped({both[1].data(), both[1].size()});
    const std::string shown = Quoted(value.value_or(both.size() < 2 ? "" : std::string(both[1])));
    if (!seen_.insert(name).second) {
      Refuse(name, "is there twice");
    } else if (name == "workers") {
      ReadWorkers(value, shown);
    } else if (name == "bandwidth_bytes_per_second") {
      double number = 0;
      if (!value || !absl::SimpleAtod(*value, &number) || !std::isfinite(number))
        Refuse(name, absl::StrCat(shown, " is not a number"));
      bandwidth_ = number;
    } else if (name == "against") {
      if (value && MayBeId(*value)) {
        request_.subjects.push_back(SubjectOf(*value));
      } else {
        Refuse(name, absl::StrCat(shown, " can be no profile's id"));
      }
    } else {
      Refuse(name, "is unknown; there are workers, bandwidth_bytes_per_second and against");
    }
  }

  std::vector<Fault>& faults() { return faults_; }
  const std::string& workers() const { return workers_; }
  const std::optional<double>& bandwidth() const { return bandwidth_; }

 private:
  void ReadWorkers(const std::optional<std::string>& value, const std::string& shown) {
    request_.worker_counts = value ? CountsIn(*value) : std::vector<int32_t>();
    workers_ = value.value_or("");
    if (request_.worker_counts.empty())
      Refuse("workers",
             absl::StrCat(shown, " is not a list of at most 64 numbers of workers, from 1 to ",
                          kMaxWorkers, " each, as 1-16 or 1,2,4"));
  }
  void Refuse(std::string field, std::string why) {
    faults_.push_back({.field = std::move(field), .description = std::move(why)});
  }

  ReportRequest& request_;
  std::vector<Fault> faults_;
  std::set<std::string> seen_;
  std::optional<double> bandwidth_;
  std::string workers_ = absl::StrCat("1-", kDefaultMaxWorkers);
};

}  // namespace

absl::StatusOr<ReportRequest> ReadReportQuery(std::string_view profile_id, std::string_view query) {
  if (!MayBeId(profile_id))
    return MakeError(absl::StatusCode::kNotFound, "there is no such page",
                     {.reason = "PAGE_UNKNOWN"});
  ReportRequest request{.subjects = {SubjectOf(profile_id)}, .worker_counts = {}};
  QueryReader fields(request);
  for (const absl::string_view field : absl::StrSplit(AbslOf(query), '&', absl::SkipEmpty()))
    fields.Read(field);
  if (!fields.faults().empty()) return FaultsError("QUERY_INVALID", std::move(fields.faults()));
  const std::optional<double>& bandwidth = fields.bandwidth();
  request.command = "stepcast report";
  for (ReportSubject& subject : request.subjects) {
    absl::StrAppend(&request.command, " ",
                    subject.question.profile().substr(std::string_view("profiles/").size()));
    if (bandwidth) subject.question.mutable_scenario()->set_bandwidth_bytes_per_second(*bandwidth);
    if (request.subjects.size() > 1)
      subject.label = subject.question.profile().substr(std::string_view("profiles/").size());
  }
  absl::StrAppend(&request.command, " --workers ", fields.workers());
  if (bandwidth)
    absl::StrAppend(&request.command, absl::StrFormat(" --bandwidth %.15gMB/s", *bandwidth / 1e6));
  if (request.worker_counts.empty()) {
    for (int32_t count = 1; count <= kDefaultMaxWorkers; ++count)
      request.worker_counts.push_back(count);
  }
  return request;
}

}  // namespace stepcast::server
