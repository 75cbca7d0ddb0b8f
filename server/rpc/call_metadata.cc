#include "server/rpc/call_metadata.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"

namespace stepcast::server {

namespace {

std::string ValueOf(const grpc::CallbackServerContext& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto at = metadata.find(key);
  return at == metadata.end() ? "" : std::string(at->second.data(), at->second.size());
}

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string RequestIdOf(const grpc::CallbackServerContext& context) {
  return CleanRequestId(ValueOf(context, "x-request-id"));
}

std::string TraceIdOf(const grpc::CallbackServerContext& context) {
  return TraceIdIn(ValueOf(context, "traceparent"));
}

std::string CleanRequestId(std::string text) {
  const bool is_printable = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  return is_printable && text.size() <= kMaxRequestIdBytes ? text : "";
}

std::string TraceIdIn(const std::string& traceparent) {
  // VERSION-TRACE-PARENT-FLAGS: 2, 32, 16 and 2 digits; later versions may go on after another
  // dash.
  constexpr size_t kBytes = 55;
  constexpr size_t kTraceAt = 3;
  constexpr size_t kTraceBytes = 32;
  if (traceparent.size() < kBytes || traceparent[2] != '-' || traceparent[35] != '-' ||
      traceparent[52] != '-')
    return "";
  if (traceparent.size() > kBytes &&
      (traceparent.compare(0, 2, "00") == 0 || traceparent[kBytes] != '-'))
    return "";
  const std::string version = traceparent.substr(0, 2);
  std::string trace = traceparent.substr(kTraceAt, kTraceBytes);
  if (!IsLowerHex(version) || version == "ff" || !IsLowerHex(trace) ||
      trace.find_first_not_of('0') == std::string::npos)
    return "";
  return trace;
}

}  // namespace stepcast::server
