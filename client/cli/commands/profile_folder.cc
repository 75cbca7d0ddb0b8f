#include "client/cli/commands/profile_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/input_files.h"
#include "client/cli/texts/characters.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace {

constexpr std::string_view kFlagsExtension = ".import";
constexpr std::array<std::string_view, 6> kProfileExtensions{".json",  ".pb",        ".binpb",
                                                             ".txtpb", ".textproto", ".pbtxt"};
constexpr std::array<std::string_view, 3> kRecordingExtensions{".txt", ".et", ".bin"};

template <typename Extensions>
bool IsOneOf(const Extensions& extensions, const std::string& extension) {
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

// The name of a file, taken apart.
struct NameParts {
  std::string stem;
  std::string extension;  // with its point, without `.gz`
};

NameParts PartsOf(const std::string& name) {
  std::filesystem::path path(name);
  if (path.extension() == ".gz") path = path.stem();
  return {.stem = path.stem(), .extension = path.extension()};
}

absl::Status CannotRead(const std::string& folder, const std::error_code& error) {
  const std::string message = absl::StrCat(folder, ": ", error.message());
  if (error == std::errc::permission_denied) return absl::PermissionDeniedError(message);
  return error == std::errc::no_such_file_or_directory ? absl::NotFoundError(message)
                                                       : absl::InvalidArgumentError(message);
}

// The path of what says how to import the recordings named `id`.
std::string FlagsName(const std::string& id) { return id + std::string(kFlagsExtension); }

bool IsFlags(const FolderFile& file) { return file.name == FlagsName(file.id); }

FolderFile FileNamed(const std::string& folder, const std::string& name,
                     const std::set<std::string>& names) {
  const NameParts parts = PartsOf(name);
  FolderFile file{.name = name, .path = absl::StrCat(folder, "/", name), .id = parts.stem};
  const bool has_flags = names.contains(FlagsName(file.id));
  if (IsOneOf(kProfileExtensions, parts.extension) ||
      (has_flags && IsOneOf(kRecordingExtensions, parts.extension))) {
    if (has_flags) file.flags = absl::StrCat(folder, "/", FlagsName(file.id));
  } else {
    file.skipped = "no profile by its extension";
  }
  return file;
}

// Leaves flags out that a recording has; refuses those of none, and what two files claim.
void Settle(std::vector<FolderFile>& files) {
  std::map<std::string, int> claims;
  for (const FolderFile& file : files) {
    if (file.skipped.empty()) ++claims[file.id];
  }
  std::erase_if(files, [&claims](const FolderFile& file) {
    return IsFlags(file) && claims.contains(file.id);
  });
  for (FolderFile& file : files) {
    if (IsFlags(file)) {
      file.skipped.clear();
      file.status = absl::NotFoundError("there is no recording of this name beside it");
    } else if (file.skipped.empty() && claims[file.id] > 1) {
      file.status = absl::AlreadyExistsError(
          absl::StrCat("several files have the name ", InQuotes(file.id), " but for extensions"));
    }
  }
}

// A sentence for a file that is a recording, and nothing says how to import it; empty: it is none.
std::string RecordingHint(const FolderFile& file, const absl::Status& status) {
  if (GetErrorDetails(status).reason != "PROFILE_UNREADABLE") return "";
  return absl::StrCat("; a recording needs a file ", file.id, std::string(kFlagsExtension),
                      " beside it with the flags of `profile import`, one a line");
}

}  // namespace

absl::StatusOr<std::vector<FolderFile>> ListFolder(const std::string& folder) {
  std::error_code error;
  std::set<std::string> names;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::error_code unknown;  // of a link to nothing, which is an entry and cannot be read
    if (!name.starts_with('.') && !std::filesystem::is_directory(entry->path(), unknown))
      names.insert(name);
  }
  if (error) return CannotRead(folder, error);
  std::vector<FolderFile> files;
  files.reserve(names.size());
  for (const std::string& name : names) files.push_back(FileNamed(folder, name, names));
  Settle(files);
  return files;
}

absl::StatusOr<std::vector<std::string>> ParseFlagLines(std::string_view text) {
  std::vector<std::string> words;
  int64_t number = 0;
  for (const absl::string_view raw :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line.front() == '#') continue;
    const size_t end = line.find_first_of(" \t=");
    const absl::string_view value =
        end == absl::string_view::npos ? "" : absl::StripAsciiWhitespace(line.substr(end + 1));
    if (line.substr(0, 2) != "--" || value.empty())
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, ": ", InQuotes({line.data(), line.size()}), " is not `--FLAG VALUE`"));
    words.push_back(absl::StrCat(line.substr(0, end), "=", value));
  }
  return words;
}

absl::StatusOr<v1::Profile> LoadFile(const Session& session, const FolderFile& file) {
  if (file.flags.empty()) {
    absl::StatusOr<v1::Profile> profile = ReadProfileInput(file.path);
    const std::string hint = RecordingHint(file, profile.status());
    return hint.empty() ? profile
                        : absl::InvalidArgumentError(
                              absl::StrCat(absl::string_view(profile.status().message()), hint));
  }
  const absl::StatusOr<std::string> text =
      ReadTextInput(file.flags, "flags of profile import, one a line");
  if (!text.ok()) return text.status();
  const absl::StatusOr<std::vector<std::string>> flags = ParseFlagLines(*text);
  absl::StatusOr<v1::Profile> profile =
      flags.ok() ? ImportHere(session, file.path, *flags) : flags.status();
  if (!absl::IsInvalidArgument(profile.status())) return profile;
  absl::Status named(profile.status().code(), absl::StrCat(file.id, std::string(kFlagsExtension),
                                                           ": ", profile.status().message()));
  profile.status().ForEachPayload([&named](absl::string_view type, const absl::Cord& payload) {
    named.SetPayload(type, payload);
  });
  return named;
}

}  // namespace stepcast::client
