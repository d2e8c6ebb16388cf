// `lab gates`: the checks that CI runs, each a program in tools/gates that also runs alone. Exit code 0:
// passed, 77: skipped.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "lab/lab.hpp"
#include "lab/process.hpp"
#include "lab/suggest.hpp"
#include "lab/terminal.hpp"

namespace shardlings::lab {
namespace {

constexpr int kSkipped = 77;

std::vector<std::string> gate_names(const Lab& lab) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(lab.root / "tools" / "gates")) {
    const bool executable = (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
    if (entry.is_regular_file() && executable && !entry.path().has_extension())
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

int gates(Lab& lab, const Words& words) {
  const std::vector<std::string> known = gate_names(lab);
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h")) {
    fmt::print("./lab gates [NAME...]: runs the checks of tools/gates, all or those named:");
    for (const std::string& name : known) fmt::print(" {}", name);
    fmt::print("\n");
    return 0;
  }
  for (const std::string& name : words) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail_usage(unknown_sentence("gate", name, known));
  }
  int passed = 0, failed = 0, skipped = 0;
  std::string table;
  for (const std::string& name : words.empty() ? known : words) {
    fmt::print("\n== {}\n", name);
    std::fflush(stdout);
    const ProcessResult result =
        run_process({(lab.root / "tools" / "gates" / name).string()}, {{}, lab.root, {}});
    const bool skip = result.code == kSkipped;
    ++(result.ok() ? passed : skip ? skipped : failed);
    const std::string verdict = result.ok() ? paint(Colour::kGreen, "passed")
                                : skip      ? "skipped"
                                            : paint(Colour::kRed, "FAILED");
    table += fmt::format("{:>7.1f} s  {:<12} {}\n", result.seconds, name, verdict);
  }
  fmt::print("\n{}{} passed, {} failed, {} skipped\n", table, passed, failed, skipped);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace shardlings::lab
