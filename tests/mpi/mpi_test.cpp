#include "mpi_test.hpp"

#include <cstdio>
#include <cstring>
#include <optional>

#include "core/random.hpp"

namespace shardlings::mpi_test {

namespace {

std::optional<MpiSession> the_session;

/// One rank speaks for all, unless a rank has something to complain about.
class FailuresOnly : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("rank %d: %s:%d\n%s\n", session().rank(), result.file_name() ? result.file_name() : "?",
                result.line_number(), result.summary());
    std::fflush(stdout);
  }
};

/// No rank begins a test before all have ended the one before.
class InStep : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*test*/) override { session().barrier(); }
};

}  // namespace

MpiSession& session() { return *the_session; }

void Log::add(const std::string& what, const Tensor& tensor) {
  std::string bytes(static_cast<std::size_t>(tensor.bytes()), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), tensor.raw(), bytes.size());
  entries_.push_back(what + " = " + bytes);
}

void expect_as_threads(const Scenario& scenario, const RunOptions& options) {
  const int n = session().size(), me = session().rank();
  std::vector<Log> threads(static_cast<std::size_t>(n));
  run_ranks(
      n, [&](Rank& rank) { scenario(rank, threads[static_cast<std::size_t>(rank.rank())]); }, options);
  Log mine;
  session().run([&](Rank& rank) { scenario(rank, mine); }, options);
  const auto& want = threads[static_cast<std::size_t>(me)].entries();
  ASSERT_EQ(mine.entries().size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (mine.entries()[i] == want[i]) continue;
    ADD_FAILURE() << "entry " << i
                  << " differs from the threads': " << want[i].substr(0, want[i].find(" = "));
    return;
  }
}

std::string failure_of(const std::function<void(Rank&)>& body, const RunOptions& options) {
  try {
    session().run(body, options);
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

double value(int r, i64 i) {
  const std::uint64_t key = key_of({42, static_cast<std::uint64_t>(r)});
  const double u = uniform(key, static_cast<std::uint64_t>(i)) - 0.5;
  return u * ((i + r) % 3 == 0 ? 1000.0 : (i + r) % 3 == 1 ? 1.0 : 0.01);
}

Tensor filled(Rank& rank, DType dtype, i64 count, int salt) {
  Tensor t(rank.memory, Category::communication, dtype, {count});
  for (i64 i = 0; i < count; ++i)
    t.set(i, dtype == DType::i32 ? rank.rank() * 1000 + i : value(rank.rank() + 100 * salt, i));
  return t;
}

std::vector<RunOptions> all_options() {
  std::vector<RunOptions> all(4);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].checked = i % 2 == 0;
    all[i].check_calls = i < 2;
  }
  return all;
}

int run_all(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  the_session.emplace();
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (session().rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly);
  }
  listeners.Append(new InStep);
  int code = RUN_ALL_TESTS();
  for (const std::string& other : session().gather(std::to_string(code))) code |= std::stoi(other);
  the_session.reset();
  return code;
}

}  // namespace shardlings::mpi_test

int main(int argc, char** argv) { return shardlings::mpi_test::run_all(argc, argv); }
