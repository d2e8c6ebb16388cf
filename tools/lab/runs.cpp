// The verbs that build a program and hand over to it (run, demo, bench), and those that find what a run left
// (report, trace).
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"
#include "lab/build.hpp"
#include "lab/lab.hpp"
#include "lab/process.hpp"
#include "lab/suggest.hpp"
#include "lab/terminal.hpp"

namespace shardlings::lab {
namespace {

bool wants_help(const Words& words) {
  return words.size() == 1 && (words[0] == "--help" || words[0] == "-h");
}

/// mpirun with what this machine needs for so many processes.
Command mpirun_command(int processes) {
  if (!on_path("mpirun"))
    fail_usage("there is no mpirun here; ./lab setup installs it (Debian: openmpi-bin libopenmpi-dev)");
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  Command command{"mpirun"};
  if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
  if (processes > cores) command.emplace_back("--oversubscribe");
  for (const char* word : {"--bind-to", "none", "-n"}) command.emplace_back(word);  // a rank has threads
  command.push_back(std::to_string(processes));
  return command;
}

/// Takes `--mpi N` out of the words; 0 if it is not there.
int take_mpi(Words& words) {
  const auto at = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word == "--mpi" || word.rfind("--mpi=", 0) == 0;
  });
  if (at == words.end()) return 0;
  const bool apart = *at == "--mpi";
  const std::string text = !apart ? at->substr(6) : at + 1 != words.end() ? *(at + 1) : "";
  char* end = nullptr;
  const long processes = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || processes < 1 || processes > 4096)
    fail_usage(fmt::format("--mpi \"{}\": must be a number of processes, such as --mpi 4", text));
  words.erase(at, at + (apart ? 2 : 1));
  return static_cast<int>(processes);
}

/// Builds a target and becomes the program it makes, after `start` (mpirun) where there is one. Words before
/// and after a `--` go to it alike.
int build_and_become(const Lab& lab, const std::string& target, const std::string& program,
                     const Words& words, const Command& start = {}) {
  if (is_terminal()) fmt::print("Building {} if it has changed ...\n", target);
  std::fflush(stdout);
  const BuildResult built = build_targets(lab.build, {target}, false);
  if (!built.ok) {
    fmt::print(stderr, "{}\nlab: {} could not be built; the output above says why\n",
               compiler_messages(built.output), target);
    return 1;
  }
  Command command = start;
  command.push_back(program_of(lab.build, program).string());
  for (const std::string& word : words) {
    if (word != "--") command.push_back(word);
  }
  if (!start.empty()) fmt::print("{}\n", fmt::join(command, " "));
  std::fflush(stdout);
  fs::current_path(lab.root);  // runs/ and data/ are found from there
  hand_over(command);
}

/// The newest folder runs/<slug>-<time> (any slug if empty) that holds the file.
fs::path newest_run(const Lab& lab, const std::string& slug, const std::string& file) {
  fs::path newest;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(lab.root / "runs", none)) {
    if (entry.is_symlink() || !fs::exists(entry.path() / file)) continue;
    const std::string name = entry.path().filename().string();
    if (!slug.empty() && name.compare(0, slug.size() + 1, slug + "-") != 0) continue;
    if (newest.empty() || fs::last_write_time(entry.path() / file) > fs::last_write_time(newest))
      newest = entry.path() / file;
  }
  if (newest.empty())
    fail_usage(
        slug.empty()
            ? fmt::format("no run has left a {} in runs/ yet; ./lab demo makes one", file)
            : fmt::format("no run of {0} has left a {1} in runs/ yet; ./lab run {0} makes one", slug, file));
  return newest;
}

}  // namespace

int run(Lab& lab, const Words& words) {
  if (words.empty() || wants_help(words)) {
    fmt::print(
        "./lab run SLUG [flags]: builds and runs a lesson's program (./lab run SLUG --help shows its "
        "flags).\n"
        "  --impl yours        with your code instead of the reference\n"
        "  --mpi N             as N processes under mpirun, instead of thread ranks (docs/mpi.md)\n");
    return words.empty() ? 2 : 0;
  }
  const Lesson& lesson = lab.lesson(words[0]);
  Words flags(words.begin() + 1, words.end());
  const int processes = take_mpi(flags);
  bool yours = false;
  for (size_t i = 0; i < flags.size(); ++i) {
    yours |= flags[i] == "--impl=yours" ||
             (flags[i] == "--impl" && i + 1 < flags.size() && flags[i + 1] == "yours");
  }
  const std::string program = fmt::format("lesson_{}{}", lesson.slug, yours ? "_yours" : "");
  return build_and_become(lab, program, program, flags,
                          processes > 0 ? mpirun_command(processes) : Command{});
}

int demo(Lab& lab, const Words& words) { return build_and_become(lab, "demo", "demo_train", words); }

int bench(Lab& lab, const Words& words) {
  std::vector<std::string> known;
  for (const auto& entry : fs::directory_iterator(lab.root / "tests" / "bench")) {
    const std::string name = entry.path().stem().string();
    if (name.rfind("bench_", 0) == 0 && entry.path().extension() == ".cpp") known.push_back(name.substr(6));
  }
  std::sort(known.begin(), known.end());
  if (words.empty() || wants_help(words)) {
    fmt::print("./lab bench NAME [flags]: measures on this machine, which should be idle. Names:");
    for (const std::string& name : known) fmt::print(" {}", name);
    fmt::print("\n");
    return words.empty() ? 2 : 0;
  }
  if (std::find(known.begin(), known.end(), words[0]) == known.end())
    fail_usage(unknown_sentence("benchmark", words[0], known));
  const std::string program = "bench_" + words[0];
  return build_and_become(lab, program, program, Words(words.begin() + 1, words.end()));
}

int report(Lab& lab, const Words& words) {
  std::string slug;
  Options options("report", "The report of the last run, in a browser where there is one.");
  options.word("slug", slug, "of which lesson (default: of any program)");
  if (const auto done = options.parse(words)) return *done;
  const fs::path file = newest_run(lab, slug, "report.html");
  fmt::print("{}\n", file.string());
  const bool screen = std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
  if (!is_terminal() || !screen || !on_path("xdg-open")) return 0;
  std::fflush(stdout);
  hand_over({"xdg-open", file.string()});
}

int trace(Lab& lab, const Words& words) {
  std::string slug;
  Options options("trace", "The trace of the last run.");
  options.word("slug", slug, "of which lesson (default: of any program)");
  if (const auto done = options.parse(words)) return *done;
  fmt::print("{}\n", newest_run(lab, slug, "trace.json").string());
  if (is_terminal())
    fmt::print(
        "Open it in Perfetto (ui.perfetto.dev) or in the browser at chrome://tracing. Nothing is sent "
        "anywhere.\n");
  return 0;
}

}  // namespace shardlings::lab
