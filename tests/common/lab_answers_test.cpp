// Predictions: what counts as an answer, and what is right.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/answers.hpp"

namespace shardlings::lab {
namespace {

TEST(LabAnswers, ReadsNumbersAndSkipsWhatIsNotAnsweredYet) {
  const auto answers =
      parse_answers("# predict first\nbytes = 1024  # per rank\ntime=2.5e-3\nlater =\nopen = ?\n\n");
  EXPECT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers.at("bytes"), 1024);
  EXPECT_EQ(answers.at("time"), 2.5e-3);
}

TEST(LabAnswers, NamesTheLineThatIsNoAnswer) {
  const auto sentence = [](const std::string& text) -> std::string {
    try {
      parse_answers(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(sentence("a = 1\nb = about 7\n").find("line 2"), std::string::npos)
      << sentence("a = 1\nb = about 7\n");
  EXPECT_NE(sentence("a = 7 MB\n").find("7 MB"), std::string::npos)
      << "a number with a tail must not be read as the number";
  EXPECT_NE(sentence("bytes 1024\n").find("key = number"), std::string::npos);
  EXPECT_NE(sentence("a = nan\n").find("not a number"), std::string::npos);
  EXPECT_NE(sentence("a = 1\na = 2\n").find("second time"), std::string::npos);
}

TEST(LabAnswers, GradesWithinTheToleranceAndSaysWhichWay) {
  const manifest::Question question{"bytes", "how many?", 100, 5};
  EXPECT_EQ(grade(question, {{"bytes", 105}}), Grade::kRight);
  EXPECT_EQ(grade(question, {{"bytes", 105.1}}), Grade::kTooHigh);
  EXPECT_EQ(grade(question, {{"bytes", 94}}), Grade::kTooLow);
  EXPECT_EQ(grade(question, {{"other", 100}}), Grade::kMissing);
}

}  // namespace
}  // namespace shardlings::lab
