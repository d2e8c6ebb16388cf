// The command line: what is set, and the sentence for each mistake.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "run/flags.hpp"

namespace shardlings::run {
namespace {

struct Program {
  i64 steps = 100;
  int batch = 12;
  double lr = 1e-3;
  std::string text = "sotu";
  std::string link = "none";
  bool tied = true;
  Flags flags{"program", "Does something"};

  Program() {
    flags.add("--steps", steps, "Steps").at_least(1);
    flags.add("--batch", batch, "Batch");
    flags.add("--lr", lr, "Learning rate").above(0).at_most(1);
    flags.add("--text", text, "Text");
    flags.add_choice("--link", link, {"none", "pcie4", "eth1g"}, "Link");
    flags.add("--tied", tied, "Tie the head");
  }
  void parse(std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    flags.parse(static_cast<int>(words.size()), words.data());
  }
  std::string complaint(std::vector<const char*> words) {
    try {
      parse(std::move(words));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }
};

std::string complaint_about(std::vector<const char*> words) { return Program().complaint(std::move(words)); }

TEST(Flags, DefaultsStayWithoutArguments) {
  Program p;
  p.parse({});
  EXPECT_EQ(p.steps, 100);
  EXPECT_EQ(p.lr, 1e-3);
  EXPECT_TRUE(p.tied);
}

TEST(Flags, EveryTypeIsRead) {
  Program p;
  p.parse({"--steps", "5000000000", "--batch=-3", "--lr", "2.5e-4", "--text", "a b", "--link", "eth1g",
           "--no-tied"});
  EXPECT_EQ(p.steps, 5000000000);  // beyond 32 bits
  EXPECT_EQ(p.batch, -3);
  EXPECT_EQ(p.lr, 2.5e-4);
  EXPECT_EQ(p.text, "a b");
  EXPECT_EQ(p.link, "eth1g");
  EXPECT_FALSE(p.tied);
}

TEST(Flags, NegativeNumbersAreValuesNotFlags) {
  Program p;
  p.parse({"--batch", "-7"});
  EXPECT_EQ(p.batch, -7);
}

TEST(Flags, ValuesAreWhatWasChosen) {
  Program p;
  p.parse({"--steps", "7", "--no-tied"});
  const auto values = p.flags.values();
  EXPECT_EQ(values.at("steps"), "7");
  EXPECT_EQ(values.at("tied"), "false");
  EXPECT_EQ(values.at("lr"), "0.001");
  EXPECT_EQ(values.size(), 6U);
}

TEST(Flags, UnknownFlagNamesTheNearest) {
  EXPECT_EQ(complaint_about({"--stepz", "5"}),
            "Unknown flag --stepz. Did you mean --steps? Valid: --help, --steps, --batch, --lr, --text, "
            "--link, --tied.");
  EXPECT_EQ(complaint_about({"--batches=3"}).rfind("Unknown flag --batches. Did you mean --batch?", 0), 0U);
  EXPECT_EQ(complaint_about({"--elephant"}).find("Did you mean"), std::string::npos);
}

TEST(Flags, WrongValuesNameFlagValueAndWhatIsValid) {
  EXPECT_EQ(complaint_about({"--steps", "abc"}), "--steps \"abc\": must be a whole number (default: 100).");
  EXPECT_EQ(complaint_about({"--steps", "3.5"}), "--steps \"3.5\": must be a whole number (default: 100).");
  EXPECT_EQ(complaint_about({"--steps", ""}), "--steps \"\": must be a whole number (default: 100).");
  EXPECT_EQ(complaint_about({"--steps", "0"}), "--steps 0: must be at least 1.");
  EXPECT_EQ(complaint_about({"--batch", "3000000000"}),
            "--batch 3000000000: must be between -2147483648 and 2147483647.");
  EXPECT_EQ(complaint_about({"--lr", "-1"}), "--lr -1: must be above 0 and at most 1.");
  EXPECT_EQ(complaint_about({"--lr", "0"}), "--lr 0: must be above 0 and at most 1.");
  EXPECT_EQ(complaint_about({"--lr", "nan"}), "--lr \"nan\": must be a number (default: 0.001).");
  EXPECT_EQ(complaint_about({"--lr", "inf"}), "--lr inf: must be above 0 and at most 1.");
  EXPECT_EQ(complaint_about({"--link", "eth1"}),
            "--link \"eth1\": must be one of none, pcie4, eth1g. Did you mean eth1g?");
  EXPECT_EQ(complaint_about({"--tied=perhaps"}),
            "--tied=perhaps: --tied is on or off; say --tied or --no-tied.");
}

TEST(Flags, MissingAndRepeatedValuesAreNamed) {
  EXPECT_EQ(complaint_about({"--steps"}), "--steps needs a value: a whole number (default: 100).");
  EXPECT_EQ(complaint_about({"--steps", "1", "--steps=2"}), "--steps is given 2 times; once is meant.");
  EXPECT_EQ(complaint_about({"sotu"}),
            "\"sotu\" is not expected here: program takes only flags (see --help).");
}

TEST(Flags, ARuleBetweenFlagsIsChecked) {
  Program p;
  p.flags.add_rule([&p] {
    if (p.steps % p.batch != 0) fail_usage("steps and batch");
  });
  EXPECT_EQ(p.complaint({"--steps", "24"}), "accepted");
  Program q;
  q.flags.add_rule([&q] {
    if (q.steps % q.batch != 0) fail_usage("steps and batch");
  });
  EXPECT_EQ(q.complaint({"--steps", "25"}), "steps and batch");
}

TEST(Flags, HelpShowsEveryFlagWithItsDefault) {
  Program p;
  const std::string help = p.flags.help();
  for (const char* part : {"Does something", "--steps INT", "[100]", "--lr NUMBER", "above 0 and at most 1",
                           "[0.001]", "--link none|pcie4|eth1g", "--tied, --no-tied", "[on]"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part << " is missing in\n" << help;
  }
}

TEST(CommonFlags, TheOtherImplementationIsRefused) {
  for (const bool yours : {false, true}) {
    CommonFlags common;
    Flags flags("program", "");
    common.add_to(flags, "reference");
    const char* words[] = {"program", "--impl", yours ? "yours" : "reference"};
    if (yours)
      EXPECT_THROW(flags.parse(3, words), UsageError);
    else
      EXPECT_NO_THROW(flags.parse(3, words));
  }
}

TEST(CommonFlags, DefaultsAreTheProgramsOwn) {
  CommonFlags common;
  common.ranks = 3;
  Flags flags("program", "");
  common.add_to(flags, "yours");
  const char* words[] = {"program"};
  flags.parse(1, words);
  EXPECT_EQ(common.ranks, 3);
  EXPECT_EQ(common.impl, "yours");
}

TEST(MainGuard, ExitCodesTellWhatHappened) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(main_guard([] {}), 0);
  EXPECT_EQ(main_guard([] { return 5; }), 5);
  EXPECT_EQ(main_guard([] { throw HelpShown{}; }), 0);
  EXPECT_EQ(main_guard([] { fail_usage("asked for 3 of 2"); }), 2);
  EXPECT_EQ(main_guard([] { LAB_TODO("write it"); }), 3);
  EXPECT_EQ(main_guard([] { fail("broke after 7 steps"); }), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("asked for 3 of 2\n"), std::string::npos);
  EXPECT_NE(said.find("./lab hint"), std::string::npos);
  EXPECT_NE(said.find("broke after 7 steps\n"), std::string::npos);
}

TEST(Nearest, FindsSlipsAndNothingElse) {
  EXPECT_EQ(nearest("--rank", {"--steps", "--ranks"}), "--ranks");
  EXPECT_EQ(nearest("zreo1", {"zero1", "zero2"}), "zero1");
  EXPECT_EQ(nearest("pipeline", {"zero1", "ddp"}), "");
}

}  // namespace
}  // namespace shardlings::run
