#include "client/cli/commands/profile_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/client/support/temporary_directory.h"

namespace stepcast::client::profile_folder_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "ID", "ID by FLAGS", "-" for what is skipped, or the code of its status, by the file's name.
std::map<std::string, std::string> Listed(const std::string& folder) {
  std::map<std::string, std::string> listed;
  const auto files = ListFolder(folder);
  EXPECT_TRUE(files.ok()) << files.status();
  for (const FolderFile& file : *files) {
    std::string& text = listed[file.name];
    text = file.id;
    if (!file.flags.empty()) text += " by " + std::filesystem::path(file.flags).filename().string();
    if (!file.skipped.empty()) text = "-";
    if (!file.status.ok()) text = absl::StatusCodeToString(file.status.code());
  }
  return listed;
}

using Names = std::map<std::string, std::string>;

TEST(ListFolderTest, KnowsProfilesByTheirExtensions) {
  TemporaryDirectory folder;
  for (const char* name : {"a.json", "b.pb.gz", "c.binpb", "d.txtpb", "e.textproto", "f.pbtxt",
                           "README.md", "g.txt", "h", "i.gz", "j.JSON", ".k.json"})
    folder.Write(name, "");
  EXPECT_EQ(Listed(folder.Path("")), (Names{{"a.json", "a"},
                                            {"b.pb.gz", "b"},
                                            {"c.binpb", "c"},
                                            {"d.txtpb", "d"},
                                            {"e.textproto", "e"},
                                            {"f.pbtxt", "f"},
                                            {"README.md", "-"},
                                            {"g.txt", "-"},
                                            {"h", "-"},
                                            {"i.gz", "-"},
                                            {"j.JSON", "-"}}));
}

TEST(ListFolderTest, KnowsRecordingsByTheFlagsBesideThem) {
  TemporaryDirectory folder;
  for (const char* name : {"a.json.gz", "a.import", "b.txt", "b.import", "c.et", "c.import",
                           "d.graph", "d.import", "e.import"})
    folder.Write(name, "");
  EXPECT_EQ(Listed(folder.Path("")), (Names{{"a.json.gz", "a by a.import"},
                                            {"b.txt", "b by b.import"},
                                            {"c.et", "c by c.import"},
                                            {"d.graph", "-"},
                                            {"d.import", "NOT_FOUND"},
                                            {"e.import", "NOT_FOUND"}}));
}

TEST(ListFolderTest, RefusesWhatTwoFilesClaim) {
  TemporaryDirectory folder;
  for (const char* name : {"a.json", "a.pb", "b.json"}) folder.Write(name, "");
  EXPECT_EQ(Listed(folder.Path("")),
            (Names{{"a.json", "ALREADY_EXISTS"}, {"a.pb", "ALREADY_EXISTS"}, {"b.json", "b"}}));
}

TEST(ListFolderTest, FollowsLinksAndLeavesFoldersOut) {
  TemporaryDirectory folder;
  std::filesystem::create_directory(folder.Path("..data"));
  folder.Write("..data/a.json", "");
  std::filesystem::create_symlink("..data/a.json", folder.Path("a.json"));
  std::filesystem::create_symlink("nowhere", folder.Path("b.json"));
  std::filesystem::create_symlink("..data", folder.Path("c.json"));
  EXPECT_EQ(Listed(folder.Path("")), (Names{{"a.json", "a"}, {"b.json", "b"}}));
}

TEST(ListFolderTest, RefusesWhatIsNoFolder) {
  TemporaryDirectory folder;
  const std::string file = folder.Write("a.json", "");
  EXPECT_EQ(ListFolder(file).status().code(), absl::StatusCode::kInvalidArgument);
  const absl::Status none = ListFolder(folder.Path("none")).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()), HasSubstr(folder.Path("none")));
}

TEST(ParseFlagLinesTest, MakesAWordOfEachLine) {
  const auto words = ParseFlagLines(
      "# How it was recorded\n\n--batch-size 128\r\n  --bandwidth=1Gbit/s\n--model\tA b  c \n");
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words, ElementsAre("--batch-size=128", "--bandwidth=1Gbit/s", "--model=A b  c"));
  EXPECT_TRUE(ParseFlagLines("")->empty());
}

TEST(ParseFlagLinesTest, RefusesOtherLinesByTheirNumber) {
  for (const char* line : {"batch-size 128", "--batch-size", "--batch-size=", "-b 1", "x"}) {
    const absl::Status status = ParseFlagLines(std::string("\n") + line).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr("line 2: \"" + std::string(line)));
  }
}

}  // namespace
}  // namespace stepcast::client::profile_folder_test
