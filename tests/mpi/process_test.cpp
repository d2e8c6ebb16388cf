// How a job ends: what mpirun's caller sees of it. Each test starts a job of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

namespace {

struct Ended {
  int code = -1;
  std::string output;
  double seconds = 0;
};

Ended start(const std::string& words) {
  const auto begin = std::chrono::steady_clock::now();
  Ended ended;
  FILE* pipe = popen(("timeout -k 1 40 " SHARDLINGS_MPIRUN " " + words + " 2>&1 </dev/null").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    ended.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ended;
}

Ended fault(const std::string& which) {
  return start("-n 3 " SHARDLINGS_FAULT_PROGRAM " --deadline 1 --fault '" + which + "'");
}

int times(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++n;
  return n;
}

// Ends within the time with this code, and says the sentence once: not once a rank.
void expect_end(const Ended& ended, int code, const std::string& says, double seconds = 10) {
  EXPECT_EQ(ended.code, code) << ended.output;
  EXPECT_EQ(times(ended.output, says), 1) << "'" << says << "' in:\n" << ended.output;
  EXPECT_LT(ended.seconds, seconds) << ended.output;
}

TEST(MpiProcess, FaultlessJobEndsWell) { EXPECT_EQ(fault("none").code, 0); }

TEST(MpiProcess, MismatchAndMissingCall) {
  expect_end(fault("other count"), 1,
             "mismatch on world #1: rank 1 calls all_reduce(40000 f32), ranks 0, 2 call");
  expect_end(fault("skips"), 1, "rank 1 returned without calling it");
}

// Rejects: exit codes of exceptions lost on the way, each rank saying the same.
TEST(MpiProcess, ExceptionsKeepTheirExitCodes) {
  expect_end(fault("usage"), 2, "2 sequences cannot be shared by 3 ranks.");
  expect_end(fault("throws"), 1, "rank 1 failed: boom");
  expect_end(fault("todo"), 3, "write this");
}

// Rejects: a job that lives as long as its slowest rank; a report that needs rank 0's own thread.
TEST(MpiProcess, BodyThatDoesNotEnd) {
  expect_end(fault("sleeps"), 1,
             "deadline of 1000 ms: ranks 0, 2 wait in all_reduce(50000 f32) on world #1; rank 1 has not");
  expect_end(fault("rank 0 sleeps"), 1, "rank 0 has not called it");
}

TEST(MpiProcess, KilledOrStoppedProcess) {
  const Ended killed = fault("killed");
  EXPECT_NE(killed.code, 0);
  EXPECT_LT(killed.seconds, 10);
  EXPECT_NE(killed.output.find("process rank 1"), std::string::npos) << killed.output;
  EXPECT_NE(killed.output.find("signal 9"), std::string::npos) << killed.output;
  const Ended stopped = fault("stopped");
  EXPECT_NE(stopped.code, 0);
  EXPECT_NE(stopped.output.find("> 1 | does not answer"), std::string::npos) << stopped.output;
}

TEST(MpiProcess, FlagsMustAgree) {
  const std::string program = "-n 1 " SHARDLINGS_FAULT_PROGRAM " --steps ";
  expect_end(start(program + "3 : " + program + "4"), 2,
             "--steps differs between ranks: \"3\" on rank 0, \"4\" on rank 1");
  EXPECT_EQ(start(program + "3 --ranks 2").code, 2);
  EXPECT_EQ(start(program + "3 --link eth1g").code, 2);
}

}  // namespace
