// Stop and go on: value and robustness. The same program in two pieces must give the same bits as in one.
#include <unistd.h>

#include <filesystem>

#include "run/train.hpp"
#include "training_test.hpp"

namespace shardlings {
namespace {

using namespace training_test;

/// A file of its own, removed at the end of the test.
struct TempFile {
  TempFile() {
    std::string name = (std::filesystem::temp_directory_path() / "training-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("no temporary folder");
    folder = name;
  }
  ~TempFile() { std::filesystem::remove_all(folder); }
  TempFile(const TempFile&) = delete;
  std::string path() const { return (folder / "checkpoint.safetensors").string(); }
  std::filesystem::path folder;
};

/// What a run saw and made.
struct Log {
  std::vector<double> losses, rates;
  std::vector<i64> micro_batches, ids;
};

constexpr Schedule kSchedule{1e-2, 1e-3, 4, 20};

/// Steps [first, last), with `window` micro-batches each.
void run_steps(Program& p, i64 first, i64 last, i64 window, Log& log) {
  for (i64 step = first; step < last; ++step) {
    std::vector<data::Batch> batches;
    batches.reserve(static_cast<std::size_t>(window));
    i64 counted = 0;
    for (i64 k = 0; k < window; ++k) {
      batches.push_back(p.loader.next());
      counted += batches.back().counted;
      log.micro_batches.push_back(batches.back().index);
      log.ids.insert(log.ids.end(), batches.back().ids.begin(), batches.back().ids.end());
    }
    std::vector<MicroBatch> micro_batches;
    micro_batches.reserve(batches.size());
    for (const data::Batch& batch : batches)
      micro_batches.push_back(run::micro_batch_of(batch, step, counted, &batch == &batches.back()));
    log.rates.push_back(kSchedule.rate(step));
    log.losses.push_back(train_step(p.rank, p.model, p.trainer, micro_batches, log.rates.back()).loss);
  }
}

/// Something else was trained in this program before: what is not put back is wrong, not just zero.
void spoil(Program& p) {
  Log ignored;
  run_steps(p, 0, 3, 1, ignored);
}

// Value, case C24. Rejects: a checkpoint of the weights alone; moments saved and not put back; a step count
// that starts anew, so that fresh bias corrections multiply old moments; a schedule that warms up again; data
// from the beginning. Each of them bends the loss curve a little, and no more: only bits show it.
TEST(Resume, GoesOnToTheSameBits) {
  on_one_rank([](Rank& rank) {
    const TempFile file;
    Log whole, pieces;
    Program straight(rank);
    run_steps(straight, 0, 20, 1, whole);
    {
      Program first(rank);
      run_steps(first, 0, 10, 1, pieces);
      save(file.path(), first.model, first.trainer, first.loader, 10);
    }
    Program second(rank);
    spoil(second);
    const i64 step = resume(file.path(), second.model, second.trainer, second.loader);
    EXPECT_EQ(step, 10) << "resume must say which step comes next: the schedule continues there";
    EXPECT_EQ(second.trainer.steps, 10)
        << "the number of applied steps was not put back: bias correction begins anew on old moments";
    EXPECT_EQ(second.loader.position(), 10)
        << "the place in the data was not put back: text is seen again, or skipped";
    if (step < 0 || step > 20) return;
    run_steps(second, step, 20, 1, pieces);
    EXPECT_TRUE(lesson::same(pieces.losses, whole.losses))
        << "losses of steps 0 to 19; the run was stopped after 10 of them. If the first after the stop is "
           "right and the next is not, the weights are right and the moments or a count are not";
    EXPECT_TRUE(lesson::same(lesson::values_of(second.trainer.flat.values),
                             lesson::values_of(straight.trainer.flat.values)))
        << "weights after 20 steps";
    EXPECT_TRUE(lesson::same(lesson::values_of(second.trainer.v), lesson::values_of(straight.trainer.v)))
        << "v after 20 steps";
  });
}

// Value. Rejects: one of the two moments forgotten, or put into the place of the other.
TEST(Resume, PutsBackBothMoments) {
  on_one_rank([](Rank& rank) {
    const TempFile file;
    Program first(rank), second(rank);
    Log log;
    run_steps(first, 0, 5, 1, log);
    spoil(second);
    save(file.path(), first.model, first.trainer, first.loader, 5);
    resume(file.path(), second.model, second.trainer, second.loader);
    EXPECT_TRUE(lesson::same(lesson::values_of(second.trainer.m), lesson::values_of(first.trainer.m)))
        << "m: without it the run goes on with another direction";
    EXPECT_TRUE(lesson::same(lesson::values_of(second.trainer.v), lesson::values_of(first.trainer.v)))
        << "v: without it the next steps are far too large or far too small";
  });
}

// Value, case C25. Rejects: a place in the data counted in steps while a step has 4 micro-batches.
TEST(Resume, NoMicroBatchTwiceAndNoneSkipped) {
  on_one_rank([](Rank& rank) {
    const TempFile file;
    Log log;
    Program first(rank), second(rank);
    run_steps(first, 0, 10, 4, log);
    save(file.path(), first.model, first.trainer, first.loader, 10);
    const i64 step = resume(file.path(), second.model, second.trainer, second.loader);
    run_steps(second, step, step + 10, 4, log);
    ASSERT_EQ(log.micro_batches.size(), 80U);
    EXPECT_EQ(log.micro_batches[40], 40)
        << "10 steps of 4 micro-batches are done, 0 to 39: the next one is 40"
        << (log.micro_batches[40] == 10  ? ". 10 is the number of steps: the place in the data counts "
                                           "micro-batches"
            : log.micro_batches[40] == 0 ? ". The data begin anew: was the place put back?"
                                         : "");
    std::vector<i64> ids = log.ids;
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end())
        << "sample " << *std::adjacent_find(ids.begin(), ids.end() - 1) << " was seen twice";
    Program straight(rank);
    Log whole;
    run_steps(straight, 0, 20, 4, whole);
    EXPECT_EQ(log.ids, whole.ids) << "samples in the order of a run without a stop";
  });
}

// Robustness. Rejects: taking the loop's step for the number of applied steps. They differ as soon as a step
// was skipped, as loss scaling in fp16 does all the time.
TEST(Resume, SkippedStepsAreNoAppliedSteps) {
  on_one_rank([](Rank& rank) {
    const TempFile file;
    Program first(rank), second(rank);
    for (std::uint64_t step = 0; step < 6; ++step) {
      first.make_gradients(1, step);
      if (step % 3 == 1) first.trainer.flat.grads.set(5, HUGE_VAL);
      first.trainer.end_step(1e-2);
    }
    save(file.path(), first.model, first.trainer, first.loader, 6);
    EXPECT_EQ(resume(file.path(), second.model, second.trainer, second.loader), 6);
    EXPECT_EQ(second.trainer.steps, 4)
        << "6 steps of the loop, 2 of them not applied: t goes on from 4, not from 6";
    for (Program* p : {&first, &second}) {
      p->make_gradients(1, 6);
      p->trainer.end_step(1e-2);
    }
    EXPECT_TRUE(lesson::same(lesson::values_of(second.trainer.flat.values),
                             lesson::values_of(first.trainer.flat.values)));
  });
}

// Value. Rejects: names of your own: no other program could go on with your run.
TEST(Resume, TheLibraryGoesOnWithYourRun) {
  on_one_rank([](Rank& rank) {
    const TempFile file;
    Program first(rank);
    Log log;
    run_steps(first, 0, 5, 2, log);
    save(file.path(), first.model, first.trainer, first.loader, 5);
    Gpt model(small_config());
    Single single(rank, model, {});
    data::Loader loader(small_text(), {2, 8, 7});
    EXPECT_EQ(run::resume_run(file.path(), model, single, loader), 5);
    EXPECT_EQ(single.adam().steps(), 5);
    EXPECT_EQ(loader.position(), 10);
    EXPECT_TRUE(lesson::same(lesson::values_of(single.adam().v()), lesson::values_of(first.trainer.v)));
    EXPECT_TRUE(
        lesson::same(lesson::values_of(single.flat().values), lesson::values_of(first.trainer.flat.values)));
  });
}

}  // namespace
}  // namespace shardlings
