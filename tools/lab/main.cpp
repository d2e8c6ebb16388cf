// The lab tool: finds the verb and runs it. What each verb does is in the file of its name.
#include <fmt/format.h>

#include <map>

#include "core/error.hpp"
#include "lab/lab.hpp"
#include "lab/process.hpp"
#include "lab/suggest.hpp"

namespace shardlings::lab {

int help(Lab& lab, const Words& /*words*/) {
  fmt::print("{}", read_file(lab.root / "tools" / "lab" / "usage.txt"));
  return 0;
}

namespace {

using Verb = int (*)(Lab&, const Words&);

int dispatch(Words words) {
  const std::map<std::string, Verb> verbs = {
      {"status", status}, {"doctor", doctor}, {"check", check},       {"watch", watch}, {"hint", hint},
      {"run", run},       {"diff", diff},     {"solution", solution}, {"reset", reset}, {"trace", trace},
      {"report", report}, {"demo", demo},     {"bench", bench},       {"test", test},   {"gates", gates},
      {"help", help},     {"readme", readme}};
  std::string name = words.empty() ? "status" : words.front();
  if (!words.empty()) words.erase(words.begin());
  if (name == "--help" || name == "-h") name = "help";
  const auto verb = verbs.find(name);
  if (verb == verbs.end()) {
    std::vector<std::string> known{"setup"};
    for (const auto& [each, function] : verbs) known.push_back(each);
    fail_usage(unknown_sentence("verb", name, known) + ". ./lab help lists them");
  }
  Lab lab = open_lab();
  return verb->second(lab, words);
}

}  // namespace
}  // namespace shardlings::lab

int main(int argc, char** argv) {
  try {
    return shardlings::lab::dispatch({argv + 1, argv + argc});
  } catch (const shardlings::UsageError& error) {
    fmt::print(stderr, "lab: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lab: {}\n", error.what());
    return 1;
  }
}
