#include "server/rpc/upload_content.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/base/random.h"

namespace stepcast::server::upload_content_test {
namespace {

std::string All(ByteSource& source) {
  std::string all;
  std::string block(1 << 16, '\0');
  while (const size_t read = source.Read(block.data(), block.size()).value())
    all.append(block, 0, read);
  return all;
}

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "stepcast_spool_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~SpoolTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

TEST_F(SpoolTest, GivesBackWhatItWasGivenWhereverThatIs) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random({seed});
    Spool spool(directory_);
    std::string given;
    // About every second one passes what is kept in memory.
    const uint64_t wanted = random.Below(2 * Spool::kMemoryBytes);
    while (given.size() < wanted) {
      const std::string piece(1 + random.Below(300'000), static_cast<char>('a' + random.Below(26)));
      ASSERT_TRUE(spool.Append(piece).ok());
      given += piece;
    }
    EXPECT_EQ(spool.in_memory(), given.size() <= Spool::kMemoryBytes) << "seed " << seed;
    EXPECT_EQ(spool.size(), static_cast<int64_t>(given.size()));
    for (int reading = 0; reading < 2; ++reading)
      EXPECT_TRUE(All(*spool.Read()) == given) << "seed " << seed << " reading " << reading;
    EXPECT_TRUE(std::filesystem::is_empty(directory_)) << "seed " << seed;
  }
}

TEST_F(SpoolTest, ADirectoryThatTakesNoFileIsNamed) {
  Spool spool(directory_ + "/nowhere");
  ASSERT_TRUE(spool.Append("fits into memory").ok());
  const absl::Status status = spool.Append(std::string(Spool::kMemoryBytes, 'x'));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(DetailsOf(status).reason, "SPOOL_UNAVAILABLE");
  EXPECT_NE(status.message().find("/nowhere"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace stepcast::server::upload_content_test
