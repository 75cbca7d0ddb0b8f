#include "server/app/small_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

absl::Status Unreadable(const std::string& why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, why, {.reason = "FILE_UNREADABLE"});
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Unreadable(absl::StrCat("cannot be read: ", std::strerror(errno)));
  std::string bytes(max_bytes + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad() || (file.gcount() == 0 && errno == EISDIR))
    return Unreadable(absl::StrCat("cannot be read: ", std::strerror(errno)));
  bytes.resize(static_cast<size_t>(file.gcount()));
  if (bytes.size() > max_bytes)
    return Unreadable(absl::StrCat("has more than ", max_bytes, " bytes"));
  // Of editors that write UTF-8's byte order mark.
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes.starts_with(kByteOrderMark)) bytes.erase(0, kByteOrderMark.size());
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff"))
    return Unreadable("is UTF-16: save it as UTF-8");
  return bytes;
}

}  // namespace stepcast::server
