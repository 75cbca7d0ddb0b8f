#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/commands/profile_folder.h"

namespace stepcast::client::profile_sync_test {
namespace {

v1::Profile Made(const std::string& digest, const std::string& set) {
  v1::Profile profile;
  profile.set_digest(digest);
  if (!set.empty()) (*profile.mutable_labels())[kSyncLabel] = set;
  return profile;
}

TEST(ActionForTest, FollowsContentAndWhoStoredIt) {
  const v1::Profile wanted = Made("new", "team");
  EXPECT_EQ(ActionFor(wanted, std::nullopt), SyncAction::kCreate);
  EXPECT_EQ(ActionFor(wanted, wanted), SyncAction::kKeep);
  EXPECT_EQ(ActionFor(wanted, Made("old", "team")), SyncAction::kReplace);
  for (const char* others : {"", "other"}) {
    EXPECT_EQ(ActionFor(wanted, Made("new", others)), SyncAction::kKeep) << others;
    EXPECT_EQ(ActionFor(wanted, Made("old", others)), SyncAction::kFail) << others;
  }
}

TEST(ActionForTest, SeesWhatTheDigestDoesNotSay) {
  const v1::Profile wanted = Made("same", "team");
  v1::Profile stored = wanted;
  stored.set_display_name("former");
  EXPECT_EQ(ActionFor(wanted, stored), SyncAction::kReplace);
  stored = wanted;
  (*stored.mutable_labels())["gpu"] = "v100";
  EXPECT_EQ(ActionFor(wanted, stored), SyncAction::kReplace);
  // Of others' it is theirs to say.
  (*stored.mutable_labels())[kSyncLabel] = "other";
  EXPECT_EQ(ActionFor(wanted, stored), SyncAction::kKeep);
}

SyncReport Mixed() {
  return {.set = "team",
          .outcomes = {{.action = SyncAction::kCreate, .profile = "profiles/a", .file = "a.json"},
                       {.action = SyncAction::kFail,
                        .file = "b.json",
                        .note = "NOT_FOUND",
                        .status = absl::NotFoundError("gone")},
                       {.action = SyncAction::kDelete,
                        .profile = "profiles/c",
                        .digest = "abc",
                        .note = "no file"}}};
}

TEST(SyncTextTest, HasARowAnOutcomeAndHowManyThereAre) {
  SyncReport report = Mixed();
  EXPECT_EQ(SyncText(report),
            "action   profile     file    note\n"
            "created  profiles/a  a.json\n"
            "failed   -           b.json  NOT_FOUND\n"
            "deleted  profiles/c  -       no file\n"
            "set team: 1 created, 1 deleted, 1 failed\n");
  report.is_dry_run = true;
  EXPECT_EQ(SyncText(report),
            "action        profile     file    note\n"
            "would create  profiles/a  a.json\n"
            "failed        -           b.json  NOT_FOUND\n"
            "would delete  profiles/c  -       no file\n"
            "set team: 1 would create, 1 would delete, 1 failed\n");
  EXPECT_EQ(SyncText({.set = "team"}), "set team: nothing\n");
}

TEST(SyncJsonTest, HasEveryFieldAndTheErrorOfAFailure) {
  const auto json = nlohmann::json::parse(SyncJson(Mixed()));
  EXPECT_EQ(json["set"], "team");
  EXPECT_EQ(json["dryRun"], false);
  ASSERT_EQ(json["profiles"].size(), 3);
  EXPECT_EQ(json["profiles"][0]["action"], "CREATE");
  EXPECT_FALSE(json["profiles"][0].contains("error"));
  EXPECT_EQ(json["profiles"][1]["error"]["code"], "NOT_FOUND");
  EXPECT_EQ(json["profiles"][1]["error"]["message"], "gone");
  EXPECT_EQ(json["profiles"][2]["digest"], "abc");
}

}  // namespace
}  // namespace stepcast::client::profile_sync_test
