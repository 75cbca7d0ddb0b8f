// The metadata of a call: what its caller says of it, for logs and listings.
//
// It is the caller's text: what is not printable ASCII, or too long, counts as absent.
// Threads: safe for one call.
// Cost: gRPC makes a map of the metadata at the first question.
#pragma once

#include <grpcpp/server_context.h>

#include <string>

namespace stepcast::server {

inline constexpr size_t kMaxRequestIdBytes = 128;

// Of `x-request-id`.
std::string RequestIdOf(const grpc::CallbackServerContext& context);
// The 32 hexadecimal digits of the trace in `traceparent`, version 00 or later
// (https://www.w3.org/TR/trace-context/, section 3.2); all zeros is none.
std::string TraceIdOf(const grpc::CallbackServerContext& context);

// The same of their texts.
std::string CleanRequestId(std::string text);
std::string TraceIdIn(const std::string& traceparent);

}  // namespace stepcast::server
