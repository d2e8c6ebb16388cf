// The progress line, on a terminal and elsewhere, against a clock of our own; and the curve in it.
#include <gtest/gtest.h>
#include <cmath>
#include <cstdio>
#include <memory>

#include "run/progress.hpp"
#include "run/sparkline.hpp"

namespace shardlings::run {
namespace {

struct Screen {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::tmpfile(), std::fclose};
  double seconds = 0;

  ProgressOptions options(decltype(ProgressOptions::style) style) {
    ProgressOptions o;
    o.out = file.get();
    o.style = style;
    o.clock = [this] { return seconds; };
    return o;
  }
  std::string text() const {
    std::string all;
    std::rewind(file.get());
    for (int c = std::fgetc(file.get()); c != EOF; c = std::fgetc(file.get())) all += static_cast<char>(c);
    return all;
  }
};

StepMetrics step(i64 number) {
  StepMetrics m;
  m.step = number;
  m.loss = 4.0 / static_cast<double>(number);
  m.tokens_per_s = 12345;
  return m;
}

i64 lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Progress, ElsewhereALineEveryThreeSecondsAndTheLastStep) {
  Screen screen;
  {
    Progress progress(100, 0, screen.options(ProgressOptions::plain));
    for (int i = 1; i <= 100; ++i) {
      screen.seconds = i * 0.1;
      progress.update(step(i));
    }
  }
  const std::string text = screen.text();
  EXPECT_EQ(lines_in(text), 4) << text;  // after 3, 6, 9 s and the end
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(text.find("step 100/100  loss 0.0400  12345 tokens/s  10s in all"), std::string::npos) << text;
}

TEST(Progress, TimeLeftIsThatOfTheStepsToCome) {
  Screen screen;
  Progress progress(100, 0, screen.options(ProgressOptions::plain));
  screen.seconds = 25;
  progress.update(step(25));
  EXPECT_NE(screen.text().find("step  25/100"), std::string::npos) << screen.text();
  EXPECT_NE(screen.text().find("1m 15s left"), std::string::npos) << screen.text();
}

TEST(Progress, AResumedRunCountsOnlyItsOwnSteps) {
  Screen screen;
  Progress progress(100, 80, screen.options(ProgressOptions::plain));
  screen.seconds = 10;
  progress.update(step(90));
  EXPECT_NE(screen.text().find("10s left"), std::string::npos) << screen.text();  // not 1.1 s
}

TEST(Progress, OnATerminalOneLineIsRedrawnAtMostTenTimesASecond) {
  Screen screen;
  {
    Progress progress(1000, 0, screen.options(ProgressOptions::live));
    for (int i = 1; i <= 1000; ++i) {
      screen.seconds = i * 0.001;
      progress.update(step(i));
    }
  }
  const std::string text = screen.text();
  EXPECT_EQ(lines_in(text), 1);
  const i64 drawn = std::count(text.begin(), text.end(), '\r');
  EXPECT_GE(drawn, 9);
  EXPECT_LE(drawn, 12);
}

TEST(Progress, ANoteDoesNotTearTheLiveLine) {
  Screen screen;
  Progress progress(10, 0, screen.options(ProgressOptions::live));
  progress.update(step(1));
  progress.note("checkpoint saved");
  EXPECT_NE(screen.text().find("\r\033[Kcheckpoint saved\n\rstep "), std::string::npos);
}

TEST(Progress, TheLastValidationLossStays) {
  Screen screen;
  Progress progress(10, 0, screen.options(ProgressOptions::plain));
  StepMetrics validated = step(1);
  validated.val_loss = 3.25;
  progress.update(validated);
  progress.update(step(2));
  progress.finish();
  EXPECT_NE(screen.text().find("val 3.2500"), std::string::npos);
}

TEST(Progress, QuietPrintsNothing) {
  Screen screen;
  {
    ProgressOptions options = screen.options(ProgressOptions::live);
    options.quiet = true;
    Progress progress(2, 0, options);
    progress.update(step(1));
    progress.note("hello");
  }
  EXPECT_EQ(screen.text(), "");
}

TEST(Progress, DurationsAreReadable) {
  EXPECT_EQ(duration_text(4.23), "4.2s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(59.6), "1m 00s");
  EXPECT_EQ(duration_text(3725), "1h 02m");
}

TEST(Sparkline, LowestAndHighestAreTheEnds) {
  const std::vector<double> values{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(sparkline(values, 8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(values, 4), "▁▃▆█");  // averaged in pairs, not every second
}

TEST(Sparkline, OddOnes) {
  EXPECT_EQ(sparkline({}, 5), "");
  EXPECT_EQ(sparkline(std::vector<double>{3, 3, 3}, 5), "▁▁▁");
  EXPECT_EQ(sparkline(std::vector<double>{1, NAN, 2}, 5), "▁×█");
  EXPECT_EQ(sparkline(std::vector<double>{1, 2}, 0), "");
}

}  // namespace
}  // namespace shardlings::run
