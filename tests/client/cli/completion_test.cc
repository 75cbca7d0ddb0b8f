#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "client/cli/commands.h"

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

}  // namespace
}  // namespace stepcast::client::completion_test
