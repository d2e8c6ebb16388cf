#include "lab/results.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lab/process.hpp"
#include "lab/terminal.hpp"

namespace shardlings::lab {
namespace {

constexpr std::chrono::seconds kDeadline{120};

/// An exception's text, or a failure without the line that only says where in the test it was.
std::string essence(const std::string& failure, bool& todo) {
  const std::string frame = "C++ exception with description \"";
  if (const size_t at = failure.find(frame); at != std::string::npos) {
    const size_t begin = at + frame.size();
    const size_t end = failure.rfind("\" thrown in");
    std::string text = failure.substr(begin, end == std::string::npos ? end : end - begin);
    todo = text.rfind("TODO ", 0) == 0;
    return text;
  }
  const size_t first_line = failure.find('\n');
  const bool place =
      first_line != std::string::npos && failure.substr(0, first_line).find("_test") != std::string::npos;
  return place ? failure.substr(first_line + 1) : failure;
}

std::string last_lines(const std::string& text, size_t count) {
  size_t at = text.size();
  for (size_t line = 0; line <= count && at != std::string::npos && at > 0; ++line)
    at = text.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

void read_report(const std::filesystem::path& file, TestResults& results) {
  const nlohmann::json report = nlohmann::json::parse(read_file(file));
  for (const auto& suite : report.at("testsuites")) {
    for (const auto& test : suite.at("testsuite")) {
      if (test.value("status", "") != "RUN") continue;
      ++results.ran;
      if (!test.contains("failures")) continue;
      TestFailure failure{fmt::format("{}.{}", suite.value("name", ""), test.value("name", "")), "", false};
      for (const auto& part : test.at("failures")) {
        if (!failure.text.empty()) failure.text += "\n";
        failure.text += essence(part.value("failure", ""), failure.todo);
      }
      results.failures.push_back(std::move(failure));
    }
  }
}

}  // namespace

TestResults run_tests(const std::filesystem::path& program, const std::filesystem::path& scratch) {
  std::filesystem::create_directories(scratch);
  const auto report = scratch / "tests.json";
  const auto log = scratch / "tests.log";
  std::filesystem::remove(report);
  const ProcessResult process = run_process(
      {program.string(), "--gtest_output=json:" + report.string(), "--gtest_color=no"}, {log, {}, kDeadline});
  TestResults results;
  results.seconds = process.seconds;
  if (process.timed_out) {
    results.broken = fmt::format("stopped after {} s: a loop that never ends?", kDeadline.count());
  } else if (process.code > 128) {
    results.broken = fmt::format("the program crashed: {}", strsignal(process.code - 128));
  } else if (!std::filesystem::exists(report)) {
    results.broken = fmt::format("the program left with exit code {} before its tests ended", process.code);
  } else {
    read_report(report, results);
    if (results.ran == 0) results.broken = "no test ran";
  }
  if (!results.broken.empty()) results.output = last_lines(read_file(log), 15);
  return results;
}

std::string describe(const TestResults& results, int max_tests) {
  std::string text;
  if (!results.broken.empty())
    return fmt::format("{} {}\n{}", paint(Colour::kRed, "✗"), results.broken,
                       indented(results.output, "    ", 15));
  int shown = 0;
  for (const TestFailure& failure : results.failures) {
    if (++shown > max_tests) continue;
    text += fmt::format("{} {}\n{}",
                        paint(failure.todo ? Colour::kYellow : Colour::kRed, failure.todo ? "○" : "✗"),
                        failure.name, indented(failure.text, "    ", 12));
  }
  if (shown > max_tests) text += fmt::format("  … and {} more failing tests\n", shown - max_tests);
  return text;
}

}  // namespace shardlings::lab
