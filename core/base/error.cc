#include "core/base/error.h"

#include <cstdint>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace stepcast {

namespace {

constexpr char kPayloadUrl[] = "stepcast/error-details";

// The payload: strings, each preceded by its length in decimal and a colon. Only this file reads
// and writes it, within one process.
class Writer {
 public:
  void String(std::string_view text) {
    out_.append(std::to_string(text.size())).append(":").append(text);
  }
  void Number(size_t number) { String(std::to_string(number)); }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string text) : text_(std::move(text)) {}

  std::string String() {
    const size_t colon = text_.find(':', at_);
    const size_t size = std::stoul(text_.substr(at_, colon - at_));
    std::string value = text_.substr(colon + 1, size);
    at_ = colon + 1 + size;
    return value;
  }
  size_t Number() { return std::stoul(String()); }

 private:
  std::string text_;
  size_t at_ = 0;
};

std::string Encode(const ErrorDetails& details) {
  Writer writer;
  writer.String(details.reason);
  writer.Number(details.metadata.size());
  for (const auto& [key, value] : details.metadata) {
    writer.String(key);
    writer.String(value);
  }
  writer.Number(details.faults.size());
  for (const Fault& fault : details.faults) {
    writer.String(fault.field);
    writer.String(fault.description);
  }
  writer.Number(details.faults_left_out);
  writer.String(details.resource.type);
  writer.String(details.resource.name);
  writer.Number(static_cast<size_t>(details.retry_delay_ms));
  writer.String(details.quota_subject);
  return writer.Take();
}

ErrorDetails Decode(std::string text) {
  Reader reader(std::move(text));
  ErrorDetails details;
  details.reason = reader.String();
  for (size_t left = reader.Number(); left > 0; --left) {
    std::string key = reader.String();
    details.metadata[std::move(key)] = reader.String();
  }
  for (size_t left = reader.Number(); left > 0; --left) {
    std::string field = reader.String();
    details.faults.push_back({.field = std::move(field), .description = reader.String()});
  }
  details.faults_left_out = reader.Number();
  details.resource.type = reader.String();
  details.resource.name = reader.String();
  details.retry_delay_ms = static_cast<int>(reader.Number());
  details.quota_subject = reader.String();
  return details;
}

// Shortens at the beginning of a character, so that what was UTF-8 still is.
void Cut(std::string& text, size_t size) {
  if (text.size() <= size) return;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  text.resize(size);
}

// Keeps what fits. A single fault over the limit is shortened, so that at least one is always
// there.
void Limit(ErrorDetails& details) {
  size_t bytes = 0;
  size_t kept = 0;
  for (Fault& fault : details.faults) {
    if (kept == kMaxFaults) break;
    if (kept == 0 && fault.field.size() + fault.description.size() > kMaxFaultBytes) {
      Cut(fault.field, kMaxFaultBytes / 2);
      Cut(fault.description, kMaxFaultBytes / 2);
    }
    bytes += fault.field.size() + fault.description.size();
    if (bytes > kMaxFaultBytes) break;
    ++kept;
  }
  details.faults_left_out += details.faults.size() - kept;
  details.faults.resize(kept);
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, std::string_view message, ErrorDetails details) {
  Limit(details);
  absl::Status status(code, absl::string_view(message.data(), message.size()));
  status.SetPayload(kPayloadUrl, absl::Cord(Encode(details)));
  return status;
}

absl::Status FaultsError(std::string_view reason, std::vector<Fault> faults) {
  const Fault& first = faults.front();
  std::string message =
      first.field.empty() ? first.description : absl::StrCat(first.field, ": ", first.description);
  Cut(message, kMaxFaultBytes);
  if (faults.size() > 1) absl::StrAppend(&message, " (and ", faults.size() - 1, " more)");
  ErrorDetails details{.reason = std::string(reason), .faults = std::move(faults)};
  return MakeError(absl::StatusCode::kInvalidArgument, message, std::move(details));
}

ErrorDetails DetailsOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  return payload.has_value() ? Decode(std::string(*payload)) : ErrorDetails{};
}

absl::Status UnderPath(std::string_view prefix, const absl::Status& status) {
  ErrorDetails details = DetailsOf(status);
  if (details.faults.empty()) return status;
  const Fault& first = details.faults.front();
  std::string message(status.message());
  if (!first.field.empty() && message.rfind(first.field, 0) == 0)
    message = absl::StrCat(std::string(prefix), ".", message);
  for (Fault& fault : details.faults) {
    fault.field = fault.field.empty() ? std::string(prefix)
                                      : absl::StrCat(std::string(prefix), ".", fault.field);
  }
  return MakeError(status.code(), message, std::move(details));
}

}  // namespace stepcast
