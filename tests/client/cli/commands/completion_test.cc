#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "client/cli/commands/commands.h"

namespace stepcast::client::completion_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// The script in bash itself is tested in tests/e2e/completion_test.py.
class BashCompletionTest : public testing::Test {
 protected:
  CLI::App program_{"A program", "program"};
  std::string text_;
};

TEST_F(BashCompletionTest, IsNamedAfterTheProgram) {
  const std::string script = BashCompletion(program_);
  EXPECT_THAT(script, HasSubstr("\ncomplete -F _program program\n"));
  EXPECT_THAT(script, Not(HasSubstr("PROGRAM")));
}

TEST_F(BashCompletionTest, AnOptionHasItsNamesAndValues) {
  program_.set_help_flag();
  program_.add_flag("--flag,-f");
  program_.add_option("--one", text_)->type_name("a|b-c");
  program_.add_option("--two", text_)->type_name("KIND")->check(CLI::IsMember({"d", "e"}));
  program_.add_option("--path", text_)->type_name("FILE");
  program_.add_option("--folder", text_)->type_name("DIR");
  program_.add_option("--maybe", text_)->type_name("[FILE.svg]")->expected(0, 1);
  program_.add_option("--any", text_)->type_name("N");
  EXPECT_THAT(
      BashCompletion(program_),
      HasSubstr(
          "options=' --flag -f --one=a|b-c --two=d|e --path=@f --folder=@d --maybe~@f --any='\n"));
}

TEST_F(BashCompletionTest, WhatAShellWouldReadIsNoValue) {
  program_.set_help_flag();
  program_.add_option("--one", text_)->type_name("$(rm -r /)|b");
  program_.add_option("--two", text_)->type_name("a|b c");
  program_.add_option("--three", text_)->type_name("'|`id`");
  EXPECT_THAT(BashCompletion(program_), HasSubstr("options=' --one= --two= --three='\n"));
}

TEST_F(BashCompletionTest, WhatTheHelpHidesIsLeftOut) {
  program_.set_help_flag();
  program_.add_option("--hidden", text_)->group("");
  program_.add_subcommand("secret")->group("");
  program_.add_subcommand("shown");
  const std::string script = BashCompletion(program_);
  EXPECT_THAT(script, HasSubstr("commands='shown'\n"));
  EXPECT_THAT(script, Not(HasSubstr("hidden")));
  EXPECT_THAT(script, Not(HasSubstr("secret")));
}

TEST_F(BashCompletionTest, OptionsAreThoseOfTheCommandsAboveOnlyWhereTheyFallThrough) {
  program_.set_help_flag();
  program_.add_option("--above", text_);
  CLI::App* const closed = program_.add_subcommand("closed");
  closed->add_option("--below", text_);
  CLI::App* const open = program_.add_subcommand("open");
  open->fallthrough();
  open->add_option("--below", text_);
  open->add_option("FILE", text_)->type_name("");
  const std::string script = BashCompletion(program_);
  EXPECT_THAT(
      script,
      HasSubstr(
          "'program closed')\n      commands=''\n      argument=''\n      options=' --below='\n"));
  EXPECT_THAT(
      script,
      HasSubstr(
          "'program open')\n      commands=''\n      argument='@f'\n      options+=' --below='\n"));
}

TEST_F(BashCompletionTest, ZshReadsTheSameTable) {
  program_.add_option("--one", text_)->type_name("a|b-c");
  EXPECT_THAT(ZshCompletion(program_), HasSubstr("#compdef program\n"));
  EXPECT_THAT(ZshCompletion(program_), HasSubstr("--one=a|b-c"));
  EXPECT_THAT(ZshCompletion(program_), Not(HasSubstr("PROGRAM")));
}

TEST_F(BashCompletionTest, FishHasALineForEachFlagAndCommand) {
  program_.set_help_flag();
  program_.add_subcommand("job", "It's a job")->add_subcommand("start", "Starts it");
  program_.add_option("--one,-o", text_, "One")->type_name("a|b-c");
  program_.add_option("--path", text_, "A path")->type_name("FILE");
  bool flag = false;
  program_.add_flag("--flag", flag, "A flag");
  const std::string script = FishCompletion(program_);
  const std::string here = "complete -c program -n '__program_at \\'\\''";
  EXPECT_THAT(script, HasSubstr(here + " -l one -s o -x -a 'a b-c' -d 'One'\n"));
  EXPECT_THAT(script, HasSubstr(here + " -l path -r -F -d 'A path'\n"));
  EXPECT_THAT(script, HasSubstr(here + " -l flag -d 'A flag'\n"));
  EXPECT_THAT(script, HasSubstr(here + " -a job -d 'It\\'s a job'\n"));
  EXPECT_THAT(script, HasSubstr("__program_at \\'job\\'' -a start -d 'Starts it'\n"));
  EXPECT_THAT(script, HasSubstr("contains -- (string trim \"$at $word\") 'job' 'job start'\n"));
  EXPECT_THAT(script, HasSubstr("contains -- $word --one --path\n"));
}

}  // namespace
}  // namespace stepcast::client::completion_test
