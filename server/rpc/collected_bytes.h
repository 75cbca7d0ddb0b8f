// The bytes that follow the header of UploadProfile: in memory, up to the limit of a profile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/importing/byte_source.h"
#include "core/importing/gunzip_source.h"
#include "server/rpc/byte_budget.h"
#include "server/rpc/call_environment.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server {

// INVALID_ARGUMENT at `field`: all bytes together are above a limit. Not worth a repetition, hence
// no RESOURCE_EXHAUSTED.
inline absl::Status StreamTooLarge(const char* reason, const char* field, const char* limit,
                                   int64_t max_bytes) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat(field, ": all chunks together are above the limit ", limit, " = ", max_bytes),
      {.reason = reason,
       .metadata = {{limit, absl::StrCat(max_bytes)}},
       .faults = {{.field = field,
                   .description =
                       absl::StrCat("all together are above ", limit, " = ", max_bytes)}},
       .quota_subject = limit});
}

class CollectedBytes {
 public:
  using Request = v1::UploadProfileRequest;

  explicit CollectedBytes(const CallEnvironment& environment)
      : max_bytes_(environment.max_profile_bytes) {}

  // Takes the next message after the header; what it keeps counts in `share`.
  absl::Status Add(const Request::Header& /*header*/, const Request& request,
                   ByteBudget::Share& share) {
    if (!request.has_chunk())
      return FaultsError(
          "REQUEST_INVALID",
          {{.field = "content", .description = "a message with neither header nor chunk"}});
    const std::string& chunk = request.chunk();
    if (static_cast<int64_t>(bytes_.size() + chunk.size()) > max_bytes_) {
      return StreamTooLarge("PROFILE_TOO_LARGE", "chunk", "max_profile_bytes", max_bytes_);
    }
    absl::Status admitted = share.Add(static_cast<int64_t>(chunk.size()));
    if (admitted.ok()) bytes_.append(chunk);
    return admitted;
  }

  // The bytes, or what they decompress to where they are compressed by gzip; that counts in
  // `share`, too, and against the same limit.
  absl::StatusOr<std::string> Take(ByteBudget::Share& share) {
    std::string compressed = std::exchange(bytes_, {});
    TextSource source(compressed);
    int64_t inflated = 0;
    GunzipSource bytes(source, {.admit =
                                    [&](int64_t more) {
                                      inflated += more;
                                      if (inflated > max_bytes_)
                                        return StreamTooLarge("PROFILE_TOO_LARGE", "chunk",
                                                              "max_profile_bytes", max_bytes_);
                                      return share.Add(more);
                                    },
                                .damaged =
                                    [](const std::string& why) {
                                      return FaultsError("PROFILE_MALFORMED",
                                                         {{.field = "chunk", .description = why}});
                                    }});
    std::string taken;
    std::array<char, size_t{64} << 10> block;
    while (true) {
      const absl::StatusOr<size_t> read = bytes.Read(block.data(), block.size());
      if (!read.ok()) return read.status();
      // Bytes that are not compressed need not be copied.
      if (inflated == 0) return *read == 0 ? std::string() : std::move(compressed);
      if (*read == 0) return taken;
      taken.append(block.data(), *read);
    }
  }

 private:
  const int64_t max_bytes_;
  std::string bytes_;
};

}  // namespace stepcast::server
