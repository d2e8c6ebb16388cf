#include "judge/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace shardlings::judge {
namespace {

bool contains(const std::vector<std::string>& messages, const std::string& text) {
  return std::any_of(messages.begin(), messages.end(),
                     [&](const std::string& message) { return message.find(text) != std::string::npos; });
}

/// Why an outcome cannot be judged at all; empty when it can.
std::string unfit(const Outcome& outcome) {
  if (outcome.end == Outcome::hung) return fmt::format("the tests did not end within {} s", outcome.seconds);
  if (outcome.end == Outcome::crashed) {
    return fmt::format("the tests crashed (signal {}): a crash teaches nothing", outcome.code);
  }
  if (outcome.code != 0 && outcome.code != 1)
    return fmt::format("the tests ended with exit code {}", outcome.code);
  if (outcome.tests.empty()) return "no test ran";
  return "";
}

std::string first_line(const std::vector<std::string>& messages) {
  return messages.empty() ? "passed" : messages.front();
}

}  // namespace

std::vector<TestResult> parse_results(const std::string& json) {
  std::vector<TestResult> results;
  const auto report = nlohmann::json::parse(json);
  for (const auto& suite : report.at("testsuites")) {
    for (const auto& test : suite.at("testsuite")) {
      TestResult result;
      result.name = suite.at("name").get<std::string>() + "." + test.at("name").get<std::string>();
      result.skipped = test.at("result") == "SKIPPED";
      if (test.contains("failures")) {
        for (const auto& failure : test.at("failures")) result.failures.push_back(failure.at("failure"));
      }
      results.push_back(std::move(result));
    }
  }
  return results;
}

Verdict judge_stub(const Outcome& outcome, const std::string& todo) {
  if (const std::string why = unfit(outcome); !why.empty()) return {false, why};
  std::string faults;
  for (const TestResult& test : outcome.tests) {
    if (test.failures.empty()) {
      faults +=
          fmt::format("{} {} with an unfilled gap\n", test.name, test.skipped ? "is skipped" : "passes");
    } else if (!contains(test.failures, todo)) {
      faults += fmt::format("{} fails, but not with '{}': {}\n", test.name, todo, first_line(test.failures));
    }
  }
  if (!faults.empty()) return {false, faults};
  return {true, fmt::format("all {} tests fail and say which gap is open", outcome.tests.size())};
}

Verdict judge_mutant(const Outcome& outcome, const std::vector<std::string>& caught_by,
                     const std::string& says) {
  if (const std::string why = unfit(outcome); !why.empty()) return {false, why};
  std::string faults, rejected;
  bool said = false;
  for (const std::string& name : caught_by) {
    const auto test = std::find_if(outcome.tests.begin(), outcome.tests.end(),
                                   [&](const TestResult& result) { return result.name == name; });
    if (test == outcome.tests.end()) {
      faults += fmt::format("there is no test {}\n", name);
    } else if (test->failures.empty()) {
      faults += fmt::format("{} does not reject it\n", name);
    } else {
      said = said || contains(test->failures, says);
    }
  }
  for (const TestResult& test : outcome.tests) {
    if (!test.failures.empty()) rejected += fmt::format("{}: {}\n", test.name, first_line(test.failures));
  }
  if (caught_by.empty()) faults += "no test is named that should reject it\n";
  if (!said && faults.empty()) faults += fmt::format("no test of caught_by says '{}'\n", says);
  if (!faults.empty())
    return {false, faults + "what failed:\n" + (rejected.empty() ? "nothing\n" : rejected)};
  return {true, "rejected\n" + rejected};
}

}  // namespace shardlings::judge
