#include "server/store/disk.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "tests/server/store/child_process.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server::disk_test {
namespace {

using testing::HasSubstr;

TEST(DataDirectoryTest, CreatesWhatIsMissing) {
  const TemporaryDirectory temporary;
  const std::string path = absl::StrCat(temporary.path(), "/a/b/c/");
  const auto owned = DataDirectory::Own(path);
  ASSERT_TRUE(owned.ok()) << owned.status();
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_EQ(owned->File("x"), absl::StrCat(temporary.path(), "/a/b/c/x"));
}

TEST(DataDirectoryTest, HasOneOwnerAtATime) {
  const TemporaryDirectory temporary;
  auto first = DataDirectory::Own(temporary.path());
  ASSERT_TRUE(first.ok()) << first.status();
  {
    const absl::Status second = DataDirectory::Own(temporary.path()).status();
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(DetailsOf(second).reason, "DATA_DIRECTORY_IN_USE");
    EXPECT_EQ(DetailsOf(second).metadata.at("pid"), absl::StrCat(getpid()));
    EXPECT_THAT(std::string(second.message()), HasSubstr(temporary.path()));
    const DataDirectory moved = *std::move(first);
    EXPECT_FALSE(DataDirectory::Own(temporary.path()).ok());
  }
  EXPECT_TRUE(DataDirectory::Own(temporary.path()).ok());
}

TEST(DataDirectoryTest, AnotherProcessIsRefusedToo) {
  const TemporaryDirectory temporary;
  const auto owned = DataDirectory::Own(temporary.path());
  ASSERT_TRUE(owned.ok()) << owned.status();
  EXPECT_EQ(InChild([&] {
              return DetailsOf(DataDirectory::Own(temporary.path()).status()).reason ==
                             "DATA_DIRECTORY_IN_USE"
                         ? 0
                         : 1;
            }),
            0);
}

TEST(DataDirectoryTest, AProcessThatEndsGivesItUp) {
  const TemporaryDirectory temporary;
  ASSERT_EQ(InChild([&] {
              const auto owned = DataDirectory::Own(temporary.path());
              if (!owned.ok()) return 1;
              _exit(0);  // without destroying it
            }),
            0);
  EXPECT_TRUE(DataDirectory::Own(temporary.path()).ok());
}

TEST(DataDirectoryTest, ADirectoryThatCannotBeMadeOrWrittenIsNamed) {
  const TemporaryDirectory temporary;
  std::filesystem::permissions(temporary.path(), std::filesystem::perms(0555));
  // Root may write anywhere, so try as nobody.
  const auto refused = [&](const std::string& path) {
    return InChild([&] {
      constexpr uid_t kNobody = 65534;
      if (geteuid() == 0 && setuid(kNobody) != 0) return 2;
      const absl::Status status = DataDirectory::Own(path).status();
      return DetailsOf(status).reason == "STORE_UNAVAILABLE" &&
                     std::string(status.message()).find(path) != std::string::npos
                 ? 0
                 : 1;
    });
  };
  EXPECT_EQ(refused(temporary.path()), 0);
  EXPECT_EQ(refused(absl::StrCat(temporary.path(), "/inside")), 0);
}

TEST(DataDirectoryTest, AFileInTheWayOrNoPathIsAnError) {
  EXPECT_EQ(DataDirectory::Own("/dev/null").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(DataDirectory::Own("/dev/null/inside").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(DataDirectory::Own("").status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace stepcast::server::disk_test
