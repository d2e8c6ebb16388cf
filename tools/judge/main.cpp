// judge stub PROGRAM --todo TEXT                        every test fails and names its gap
// judge mutant PROGRAM --caught-by A.B… --says TEXT     a wrong answer is rejected, by the right test, with
// the right words judge count PROGRAM N                                 the program holds N tests judge exit
// CODE --says TEXT -- PROGRAM FLAGS…         a program leaves with this code and says this Exit code 0 when
// it is so, 1 when not. What the tests printed is shown when the verdict is no.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "judge/process.hpp"
#include "judge/verdict.hpp"

namespace {
namespace fs = std::filesystem;
using namespace shardlings::judge;

struct Run {
  Outcome outcome;
  std::string output;
};

Run run_tests(const std::string& program, int seconds) {
  const fs::path results = fs::temp_directory_path() / fmt::format("shardlings-judge-{}.json", getpid());
  const Finished finished =
      run_program({program, "--gtest_color=no", "--gtest_output=json:" + results.string()}, seconds);
  Run run{{}, finished.output};
  run.outcome.seconds = seconds;
  run.outcome.code = finished.signal != 0 ? finished.signal : finished.code;
  if (finished.signal != 0) run.outcome.end = Outcome::crashed;
  if (finished.timed_out) run.outcome.end = Outcome::hung;
  std::ifstream in(results);
  const std::string json(std::istreambuf_iterator<char>(in), {});
  fs::remove(results);
  if (run.outcome.end == Outcome::exited && !json.empty()) run.outcome.tests = parse_results(json);
  return run;
}

int report(const Verdict& verdict, const std::string& output) {
  if (!verdict.ok) fmt::print("{}\n", output);
  fmt::print("{}{}\n", verdict.ok ? "" : "judge: ", verdict.text);
  return verdict.ok ? 0 : 1;
}

int count_tests(const std::string& program, int expected, int seconds) {
  const Finished finished = run_program({program, "--gtest_list_tests"}, seconds);
  int found = 0;
  for (std::size_t at = 0; (at = finished.output.find("\n  ", at)) != std::string::npos; ++at) ++found;
  return report({found == expected, fmt::format("{} tests; the manifest says {}", found, expected)},
                finished.output);
}

int check_exit(const std::vector<std::string>& command, int code, const std::string& says, int seconds) {
  const Finished finished = run_program(command, seconds);
  std::string fault;
  if (finished.timed_out) fault = fmt::format("did not end within {} s", seconds);
  if (fault.empty() && finished.signal != 0) fault = fmt::format("crashed with signal {}", finished.signal);
  if (fault.empty() && finished.code != code)
    fault = fmt::format("exit code {} instead of {}", finished.code, code);
  if (fault.empty() && finished.output.find(says) == std::string::npos)
    fault = fmt::format("does not say '{}'", says);
  return report({fault.empty(), fault.empty() ? fmt::format("exit code {}, as expected", code) : fault},
                finished.output);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Judges stubs, mutants and programs by running them");
  app.require_subcommand(1);
  std::string program, todo, says;
  std::vector<std::string> caught_by, command;
  int seconds = 120, tests = 0, code = 0;
  app.add_option("--seconds", seconds, "time limit")->capture_default_str();
  auto* stub = app.add_subcommand("stub", "every test fails and names its gap");
  stub->add_option("program", program)->required();
  stub->add_option("--todo", todo)->required();
  auto* mutant = app.add_subcommand("mutant", "rejected by the right tests, with the right words");
  mutant->add_option("program", program)->required();
  mutant->add_option("--caught-by", caught_by)->required();
  mutant->add_option("--says", says)->required();
  auto* count = app.add_subcommand("count", "holds this many tests");
  count->add_option("program", program)->required();
  count->add_option("tests", tests)->required();
  auto* leaves = app.add_subcommand("exit", "leaves with this code and says this");
  leaves->add_option("code", code)->required();
  leaves->add_option("--says", says);
  leaves->add_option("command", command)->required();
  CLI11_PARSE(app, argc, argv);
  try {
    if (*count) return count_tests(program, tests, seconds);
    if (*leaves) return check_exit(command, code, says, seconds);
    const Run run = run_tests(program, seconds);
    return report(*stub ? judge_stub(run.outcome, todo) : judge_mutant(run.outcome, caught_by, says),
                  run.output);
  } catch (const std::exception& error) {
    fmt::print(stderr, "judge: {}\n", error.what());
    return 2;
  }
}
