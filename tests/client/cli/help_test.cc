#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <string>

#include "client/cli/command_line.h"

namespace stepcast::client::help_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class HelpTest : public testing::Test {
 protected:
  HelpTest() {
    SetHelp(program_);
    program_.fallthrough();
    command_ = program_.add_subcommand("predict", "Says how fast the job runs");
    command_->add_option("PROFILE", text_, "A profile")->required()->type_name("");
    command_->add_option("--own", text_, "A flag of its own")->type_name("N");
    command_->add_option("--currency", text_, "A flag that few need")->type_name("CODE");
    Shared("--bandwidth", 0);
    Shared("--window", 0);
  }

  // A flag of a shared group whose text takes `lines` lines more than one.
  void Shared(const std::string& name, int lines) {
    std::string text = "A shared flag";
    for (int i = 0; i < lines; ++i) text += " " + std::string(70, 'x');
    command_->add_option(name, text_, text)->type_name("RATE")->group("Scenario");
  }

  std::string Help(CLI::AppFormatMode mode = CLI::AppFormatMode::Normal) const {
    return command_->help("", mode);
  }

  CLI::App program_{"Says how fast jobs run.", "stepcast"};
  CLI::App* command_ = nullptr;
  std::string text_;
};

TEST_F(HelpTest, AShortCommandShowsAllOfItsFlags) {
  for (const char* part : {"--own", "--currency", "--bandwidth", "--window"})
    EXPECT_THAT(Help(), HasSubstr(part));
  EXPECT_THAT(Help(), Not(HasSubstr("more flags")));
}

TEST_F(HelpTest, ALongCommandShowsItsOwnFlagsAndTheCommonOnes) {
  Shared("--quantum", 60);
  EXPECT_THAT(Help(), HasSubstr("--own N"));
  EXPECT_THAT(Help(), HasSubstr("--bandwidth RATE"));
  EXPECT_THAT(Help(), Not(HasSubstr("--window")));
  EXPECT_THAT(Help(), Not(HasSubstr("--quantum")));
  EXPECT_THAT(Help(), Not(HasSubstr("--currency")));
  EXPECT_THAT(Help(), HasSubstr("3 more flags: stepcast predict --help-all\n"));
}

TEST_F(HelpTest, TheLeastCommonFlagsGoFirst) {
  Shared("--cluster", 10);
  Shared("--latency", 20);
  Shared("--order", 25);
  EXPECT_THAT(Help(), HasSubstr("--cluster RATE"));
  EXPECT_THAT(Help(), HasSubstr("--latency RATE"));
  EXPECT_THAT(Help(), Not(HasSubstr("--order")));
}

TEST_F(HelpTest, ARequiredFlagIsAlwaysShown) {
  Shared("--window-bytes", 60);
  command_->get_option("--window-bytes")->required();
  EXPECT_THAT(Help(), HasSubstr("--window-bytes RATE"));
}

TEST_F(HelpTest, AllFlagsAreShownWhereTheyAreAskedFor) {
  Shared("--quantum", 60);
  for (const char* part : {"--own", "--currency", "--bandwidth", "--window", "--quantum"})
    EXPECT_THAT(Help(CLI::AppFormatMode::All), HasSubstr(part));
}

TEST_F(HelpTest, LinesHaveAtMostAHundredColumnsAndKeepWholeWords) {
  Shared("--quantum", 3);
  const std::string help = Help();
  size_t start = 0;
  for (size_t end = help.find('\n'); end != std::string::npos; end = help.find('\n', start)) {
    EXPECT_LE(end - start, 100U) << help.substr(start, end - start);
    start = end + 1;
  }
  EXPECT_THAT(help, HasSubstr("\n" + std::string(28, ' ') + std::string(70, 'x') + "\n"));
}

TEST_F(HelpTest, ALongListOfChoicesGoesOnInFurtherLines) {
  const std::string word(30, 'w');
  command_->add_option("--kind", text_, "Kind")
      ->type_name(word + "|" + word + "|" + word + "|" + word);
  EXPECT_THAT(Help(), HasSubstr("\n  --kind " + word + "|" + word + "|\n      " + word + "|" +
                                word + "\n" + std::string(28, ' ') + "Kind\n"));
}

TEST_F(HelpTest, ASemicolonAtTheEndOfALineEndsALine) {
  command_->add_option("--kinds", text_, "one: the first;\ntwo: the\nsecond")->type_name("K");
  EXPECT_THAT(Help(), HasSubstr("one: the first;\n" + std::string(28, ' ') + "two: the second\n"));
}

TEST_F(HelpTest, FlagsThatNeedOrExcludeOthersSayIt) {
  CLI::Option* own = command_->get_option("--own");
  command_->get_option("--bandwidth")->needs(own);
  command_->get_option("--window")->excludes(own);
  EXPECT_THAT(Help(), HasSubstr("A shared flag (needs --own)"));
  EXPECT_THAT(Help(), HasSubstr("A shared flag (not with --own)"));
}

TEST_F(HelpTest, ExamplesAreThoseOfTheCommand) {
  command_->add_subcommand("other", "Another");
  EXPECT_THAT(Help(), HasSubstr("Examples:\n  stepcast predict "));
  EXPECT_THAT(Help(), Not(HasSubstr("stepcast tune")));
}

TEST_F(HelpTest, CommandsAreNamedInTheOrderOfTheirHelp) {
  program_.add_subcommand("tune", "Says what to set");
  program_.add_subcommand("hidden", "Not shown")->group("");
  EXPECT_THAT(CommandNames(program_), testing::ElementsAre("predict", "tune"));
  EXPECT_THAT(program_.help(), HasSubstr("\n  tune                      Says what to set\n"));
}

}  // namespace
}  // namespace stepcast::client::help_test
