#include "lab/answers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "core/error.hpp"

namespace shardlings::lab {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

}  // namespace

std::map<std::string, double> parse_answers(const std::string& text) {
  std::map<std::string, double> answers;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == std::string::npos)
      fail_usage(fmt::format("line {} of answers.txt is \"{}\"; it should be: key = number", number, line));
    const std::string key = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
    if (value.empty() || value == "?") continue;
    char* end = nullptr;
    const double found = std::strtod(value.c_str(), &end);
    if (*end != '\0' || !std::isfinite(found))
      fail_usage(fmt::format("line {} of answers.txt: {} = {}, which is not a number", number, key, value));
    if (!answers.emplace(key, found).second)
      fail_usage(fmt::format("line {} of answers.txt answers {} a second time", number, key));
  }
  return answers;
}

Grade grade(const manifest::Question& question, const std::map<std::string, double>& answers) {
  const auto given = answers.find(question.key);
  if (given == answers.end()) return Grade::kMissing;
  if (std::abs(given->second - question.value) <= question.tolerance) return Grade::kRight;
  return given->second > question.value ? Grade::kTooHigh : Grade::kTooLow;
}

}  // namespace shardlings::lab
