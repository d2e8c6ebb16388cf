#include "lab/junit.hpp"

#include "core/error.hpp"

namespace shardlings::lab {
namespace {

/// The value of `name="…"` within one tag, with the five XML entities resolved.
std::string attribute(const std::string& tag, const std::string& name) {
  const size_t at = tag.find(" " + name + "=\"");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 3;
  std::string value = tag.substr(begin, tag.find('"', begin) - begin);
  const std::vector<std::pair<std::string, std::string>> entities = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}};
  for (const auto& [entity, plain] : entities) {
    for (size_t found = value.find(entity); found != std::string::npos;
         found = value.find(entity, found + plain.size()))
      value.replace(found, entity.size(), plain);
  }
  return value;
}

/// GoogleTest prints the reason of a GTEST_SKIP on the line after the place.
std::string skip_reason(const std::string& body) {
  const size_t at = body.find(": Skipped\n");
  if (at == std::string::npos) return "no reason given";
  const size_t begin = at + 10;
  return body.substr(begin, body.find('\n', begin) - begin);
}

}  // namespace

TestCounts count_tests(const std::string& junit) {
  require(junit.find("<testsuite") != std::string::npos, "this is not a JUnit file: it has no <testsuite>");
  TestCounts counts;
  size_t at = 0;
  while ((at = junit.find("<testcase ", at)) != std::string::npos) {
    const std::string tag = junit.substr(at, junit.find('>', at) - at);
    const bool closed = tag.back() == '/';
    const size_t end = closed ? at + tag.size() : junit.find("</testcase>", at);
    require(end != std::string::npos, "the JUnit file ends in the middle of a test case");
    const std::string body = junit.substr(at, end - at);
    const std::string name = attribute(tag, "name"), status = attribute(tag, "status");
    if (status == "run") {
      ++counts.passed;
    } else if (status == "fail") {
      ++counts.failed;
      counts.failures.push_back(name);
    } else {
      counts.skipped.push_back({name, status == "disabled" ? "disabled" : skip_reason(body)});
    }
    at = end;
  }
  return counts;
}

}  // namespace shardlings::lab
