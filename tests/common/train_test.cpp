// The training loop: it stops where it must, says why, and never loses what was good.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <thread>

#include "data_fixture.hpp"
#include "run/text_task.hpp"
#include "train_fixture.hpp"

namespace shardlings {
namespace {

class TrainTest : public InTempFolder {
 protected:
  std::string path() const { return at("checkpoint.safetensors"); }
};

// Rejects: a run that goes on with NaN, an update after it was seen, a message that names no tensor, and a
// checkpoint overwritten by a broken state.
TEST_F(TrainTest, NanInAWeightStopsTheRun) {
  on_one_rank([&](Rank& rank) {
    TinyRun t(rank);
    run::TrainOptions options = tiny_options(20);
    options.checkpoint_every = 3;
    options.save = [&](i64 done) { t.save(path(), done); };
    std::vector<double> before;
    options.on_step = [&](const run::StepMetrics& m) {
      if (m.step != 5) return;
      t.model.units[1]->params[3].value.set(7, std::numeric_limits<double>::quiet_NaN());
      before = elements_of(t.single.flat().values);
    };
    const std::string name = t.model.units[1]->params[3].name;
    const std::string sentence = failure_of([&] { t.train(options); });
    EXPECT_NE(sentence.find("step 5:"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("parameter " + name + ", element 7 is nan"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("untouched"), std::string::npos) << sentence;
    const std::vector<double> after = elements_of(t.single.flat().values);
    for (std::size_t i = 0; i < before.size(); ++i) {
      ASSERT_TRUE(after[i] == before[i] || (std::isnan(after[i]) && std::isnan(before[i])))
          << "element " << i;
    }
    EXPECT_EQ(t.single.adam().steps(), 5);
    TinyRun again(rank);
    EXPECT_EQ(run::resume_run(path(), again.model, again.single, again.loader), 3) << "the last good one";
    EXPECT_EQ(first_bad_value(again.model), "");
  });
}

// Rejects: the same for a run that diverges by itself.
TEST_F(TrainTest, DivergingRunStops) {
  on_one_rank([&](Rank& rank) {
    TinyRun t(rank);
    run::TrainOptions options = tiny_options(200);
    options.rate = [](i64 step) { return step < 2 ? 1e-3 : 1e36; };
    options.checkpoint_every = 2;
    options.save = [&](i64 done) {
      if (done == 2) t.save(path(), done);
    };
    std::vector<double> before;
    options.on_step = [&](const run::StepMetrics&) { before = elements_of(t.single.flat().values); };
    const std::string sentence = failure_of([&] { t.train(options); });
    EXPECT_NE(sentence.find("the first bad tensor is"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("smaller learning rate"), std::string::npos) << sentence;
    EXPECT_TRUE(elements_of(t.single.flat().values) == before) << sentence;
    TinyRun again(rank);
    EXPECT_EQ(run::resume_run(path(), again.model, again.single, again.loader), 2);
  });
}

// Rejects: a time limit that is not looked at, a last state that is not saved, validation time counted.
TEST_F(TrainTest, StopsWhenTheTimeIsUp) {
  on_one_rank([&](Rank& rank) {
    TinyRun t(rank);
    const data::Sequential validation(tiny_text(1), 2, 8);
    run::TrainOptions options = tiny_options(1'000'000);
    options.max_seconds = 0.2;
    options.eval_every = 1'000'000;
    i64 saved = -1;
    options.save = [&](i64 done) { saved = done; };
    const run::TrainResult result = run::train({rank, t.model, t.single, t.loader, &validation}, options);
    EXPECT_GE(result.seconds, 0.2);
    EXPECT_LT(result.seconds, 10);
    EXPECT_EQ(saved, result.steps_done);
    EXPECT_EQ(result.metrics.size(), static_cast<std::size_t>(result.steps_done));
    EXPECT_TRUE(result.metrics.back().val_loss.has_value()) << "the last step is validated in any case";
    EXPECT_FALSE(result.interrupted);
  });
}

// Rejects: a signal that kills, or is only seen at the end.
TEST_F(TrainTest, SignalStopsAfterTheStep) {
  on_one_rank([&](Rank& rank) {
    for (const int signal : {SIGINT, SIGTERM}) {
      TinyRun t(rank);
      run::TrainOptions options = tiny_options(1000);
      i64 saved = -1;
      options.save = [&](i64 done) { saved = done; };
      options.on_step = [&](const run::StepMetrics& m) {
        if (m.step == 4) std::raise(signal);
      };
      const run::TrainResult result = t.train(options);
      EXPECT_TRUE(result.interrupted);
      EXPECT_LE(result.steps_done, 5);
      EXPECT_EQ(saved, result.steps_done);
    }
  });
}

// Rejects: a batch that two ranks count, one that nobody counts, a mean of the ranks' means, ranks that
// evaluate different numbers of batches (5 do not divide among 2 or 3).
TEST_F(TrainTest, RanksShareTheValidationText) {
  double alone = 0;
  for (const int ranks : {1, 2, 3, 8}) {
    run_ranks(ranks, [&](Rank& rank) {
      TinyRun t(rank);
      const data::Sequential validation(tiny_text(1), 2, 8);
      const double loss = run::validation_loss({rank, t.model, t.single, t.loader, &validation}, 5);
      if (ranks == 1) alone = loss;
      EXPECT_NEAR(loss, alone, 1e-12) << ranks << " ranks";
    });
  }
}

/// Sends the signal in the first forward pass of the first validation, and counts the passes after it.
struct Impatient : Single {
  using Single::Single;
  void before_forward(Unit&) override {
    if (++units == 4) std::raise(SIGINT);
  }
  int units = 0;
};

// Rejects: validating to the end after Ctrl-C, which takes longer than 5 s for larger models.
TEST_F(TrainTest, SignalStopsValidation) {
  on_one_rank([&](Rank& rank) {
    TinyRun t(rank);
    Impatient strategy(rank, t.model, {});
    const data::Sequential validation(tiny_text(1), 1, 8);
    run::TrainOptions options = tiny_options(1000);
    options.eval_every = 1;
    options.eval_batches = 100;
    i64 saved = -1;
    options.save = [&](i64 done) { saved = done; };
    const run::TrainResult result = run::train({rank, t.model, strategy, t.loader, &validation}, options);
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.steps_done, 1);
    EXPECT_EQ(saved, 1);
    EXPECT_EQ(strategy.units, 3 + 3) << "one step and one validation batch of three units";
    EXPECT_FALSE(result.metrics.back().val_loss.has_value());
  });
}

constexpr const char* kChild = "SHARDLINGS_TEST_TRAIN_INTO";

/// What the interrupted process does: trains as long as it may.
void train_until_interrupted(const std::string& path) {
  on_one_rank([&](Rank& rank) {
    TinyRun t(rank);
    run::TrainOptions options = tiny_options(100'000'000);
    options.save = [&](i64 done) { t.save(path, done); };
    options.on_step = [&](const run::StepMetrics& m) {
      if (m.step == 3) std::ofstream(path + ".started") << "3 steps";
    };
    EXPECT_TRUE(t.train(options).interrupted);
  });
}

// Rejects: Ctrl-C that loses the run, takes longer than 5 s, or leaves a state that goes on differently. The
// other process is this program once more, with this test only.
TEST_F(TrainTest, CtrlCSavesAndLeavesInTime) {
  if (const char* into = std::getenv(kChild)) return train_until_interrupted(into);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setenv(kChild, path().c_str(), 1);
    ::execl("/proc/self/exe", "common_tests", "--gtest_filter=TrainTest.CtrlCSavesAndLeavesInTime",
            "--gtest_brief=1", nullptr);
    ::_exit(127);
  }
  using Clock = std::chrono::steady_clock;
  const auto wait_for = [](const std::function<bool()>& done, int seconds) {
    for (const auto until = Clock::now() + std::chrono::seconds(seconds); Clock::now() < until;) {
      if (done()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  };
  const bool started = wait_for([&] { return std::filesystem::exists(path() + ".started"); }, 40);
  ::kill(child, SIGINT);
  int status = -1;
  const bool left = wait_for([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 5);
  if (!left) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  ASSERT_TRUE(started) << "the other process never made 3 steps";
  ASSERT_TRUE(left) << "still running 5 s after SIGINT";
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  on_one_rank([&](Rank& rank) {
    TinyRun resumed(rank), straight(rank);
    const i64 step = run::resume_run(path(), resumed.model, resumed.single, resumed.loader);
    ASSERT_GE(step, 3);
    resumed.train(tiny_options(step + 2, step));
    straight.train(tiny_options(step + 2));
    EXPECT_TRUE(elements_of(resumed.single.flat().values) == elements_of(straight.single.flat().values));
  });
}

// Rejects: losses of rank 0 alone, a loss scale that forgets the other ranks or micro-batches.
TEST(Train, LossIsTheMeanOverRanksAndMicroBatches) {
  const auto first_loss = [](int ranks, i64 micro_batches) {
    double loss = 0;
    run_ranks(ranks, [&](Rank& rank) {
      GptConfig config = tiny_config();
      config.dropout = 0;
      TinyRun t(rank, config);
      run::TrainOptions options = tiny_options(1);
      options.micro_batches = micro_batches;
      const double mine = t.train(options).loss;
      if (rank.rank() == ranks - 1) loss = mine;
    });
    return loss;
  };
  const double one = first_loss(1, 6);
  EXPECT_NEAR(first_loss(2, 3), one, 1e-5);
  EXPECT_NEAR(first_loss(3, 2), one, 1e-5);
  EXPECT_NEAR(first_loss(6, 1), one, 1e-5);
}

// Rejects: a trace that grows for hours, or that has forgotten the end.
// Case C28. Rejects: a schedule that advances once for each rank, and one that begins anew after a resume.
TEST(Train, TheRateOfAStepDependsOnTheStepAlone) {
  for (const int ranks : {1, 2, 4}) {
    for (const i64 first_step : {0, 10}) {
      run_ranks(ranks, [&](Rank& rank) {
        TinyRun t(rank);
        const run::TrainResult result = t.train(tiny_options(14, first_step));
        for (const run::StepMetrics& m : result.metrics)
          EXPECT_EQ(*m.lr, (Schedule{1e-2, 1e-3, 4, 20}.rate(m.step - 1)))
              << "step " << m.step - 1 << " of a run that began at " << first_step << " on " << ranks;
      });
    }
  }
}

// Rejects: a step that is done twice or with other data than the caller's, and metrics that are not the
// step's.
TEST(Train, TheCallerMayDealOutTheDataAndDoTheStep) {
  on_one_rank([](Rank& rank) {
    TinyRun t(rank);
    run::TrainOptions options = tiny_options(3);
    options.batches = [&](i64 step) { return std::vector{t.loader.at(5 + step)}; };
    std::vector<i64> seen;
    options.step = [&](const std::vector<data::Batch>& batches, i64 step, double rate) {
      EXPECT_EQ(batches.size(), 1U);
      EXPECT_EQ(rate, options.rate(step));
      seen.push_back(batches.front().index);
      return run::GlobalStep{7.0 + static_cast<double>(step), 0.5, 100};
    };
    const run::TrainResult result = t.train(options);
    EXPECT_EQ(seen, (std::vector<i64>{5, 6, 7}));
    EXPECT_EQ(losses_of(result), (std::vector<double>{7, 8, 9}));
    EXPECT_EQ(*result.metrics.back().norm, 0.5);
    EXPECT_EQ(t.loader.position(), 0) << "the loader's own order was not asked for";
    EXPECT_EQ(t.single.adam().steps(), 0) << "the library made a step of its own";
  });
}

// Rejects: a batch or a vocabulary that is not the configuration's or the tokenizer's, parts of the text that
// are the same, an unknown model that is accepted.
TEST_F(TrainTest, TextTaskIsModelAndText) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i) + "\n";
  write("text.txt", text);
  const run::TextTask task = run::text_task("char", at("text.txt"), 0, 0.25);
  EXPECT_EQ(task.batch, 12);
  EXPECT_EQ(task.config.channels, 128);
  EXPECT_EQ(task.config.dropout, 0.25);
  EXPECT_EQ(task.config.vocab, task.tokenizer->vocab_size());
  EXPECT_GT(task.train.size(), 5 * task.validation.size());
  EXPECT_GT(task.validation.size(), 1);
  EXPECT_EQ(run::text_task("char", at("text.txt"), 5).batch, 5);
  EXPECT_THROW(run::text_task("chat", at("text.txt"), 0), UsageError);
}

// Rejects: more ranks than sequences, accepted; a sentence without the numbers.
TEST(TextTask, NeedsASequenceForEachRank) {
  EXPECT_NO_THROW(run::check_ranks_have_work(12, 12));
  const std::string sentence = failure_of([] { run::check_ranks_have_work(13, 12); });
  EXPECT_NE(sentence.find("--ranks 13 with 12 sequences"), std::string::npos) << sentence;
}

TEST(Train, TraceKeepsTheFirstAndLastSteps) {
  on_one_rank([](Rank& rank) {
    TinyRun t(rank);
    run::TrainOptions options = tiny_options(20);
    options.trace_steps = 2;
    options.eval_every = 1;  // validation pauses the trace, and only until the next step
    options.eval_batches = 1;
    const data::Sequential validation(tiny_text(1), 2, 8);
    run::train({rank, t.model, t.single, t.loader, &validation}, options);
    std::vector<std::string> steps;
    for (const Event& e : rank.trace.events()) {
      if (e.kind == Event::other) steps.push_back(e.what);
    }
    ASSERT_EQ(steps.size(), 4U);
    EXPECT_NE(steps[1], steps[2]);
    EXPECT_NE(steps.back().find("19"), std::string::npos) << steps.back();
  });
}

// Rejects: a mean of batches' means when the last batch has fewer targets; dropout while validating.
TEST(Train, ValidationLossIsTheMeanOverAllTargets) {
  on_one_rank([](Rank& rank) {
    TinyRun t(rank);
    const data::Sequential one(tiny_text(1), 1, 8), five(tiny_text(1), 5, 8);
    const double a = run::validation_loss({rank, t.model, t.single, t.loader, &one}, 0);
    const double b = run::validation_loss({rank, t.model, t.single, t.loader, &five}, 0);
    EXPECT_NEAR(a, b, 1e-6);
    EXPECT_EQ(a, run::validation_loss({rank, t.model, t.single, t.loader, &one}, 0));
  });
}

}  // namespace
}  // namespace shardlings
