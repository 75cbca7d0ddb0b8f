#include "client/local/file_hint.h"

#include "core/importing/file_kind.h"
#include "stepcast/profile_encoding.h"

namespace stepcast::client {

std::string NoProfileHint(const std::string& path) {
  const absl::StatusOr<std::string> start = ReadFileStart(path, kKindBytes);
  if (!start.ok()) return "";
  const FileKind kind = KindOf(*start);
  if (kind == FileKind::kProfileJson || kind == FileKind::kProfileText || kind == FileKind::kBinary)
    return "";
  std::string hint(path);
  hint.append(" looks like ")
      .append(TextOf(kind))
      .append("; ")
      .append(kReadableFormats)
      .append(": stepcast profile import");
  return hint;
}

}  // namespace stepcast::client
