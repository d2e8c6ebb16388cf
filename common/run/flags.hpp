#pragma once
// The command line of every program: typed flags with their defaults in --help, and one sentence for each
// mistake. A thin layer over CLI11, which stays in flags.cpp. Also the last line of defence of every main():
// main_guard.
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/dtype.hpp"

namespace shardlings::run {

/// Thrown by Flags::parse after it has printed the help that was asked for; main_guard returns 0 for it.
struct HelpShown {};

/// Thrown by launch on every process of a job that failed, after one of them has said why; main_guard returns
/// the code.
struct FailureShown {
  int code = 1;
};

class Flags {
 public:
  /// One flag that was added; its limits can be narrowed: `flags.add("--steps", steps, "…").at_least(1)`.
  /// Limits are for numbers; a value outside is a UsageError that names flag, value and limit.
  class Flag {
   public:
    Flag& at_least(double limit);
    Flag& above(double limit);
    Flag& at_most(double limit);

   private:
    friend class Flags;
    explicit Flag(void* entry) : entry_(entry) {}
    void* entry_;  // lives as long as the Flags
  };

  Flags(const std::string& program, const std::string& description);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  /// `value` holds the default when it is added and the user's choice after parse; it must outlive this
  /// object. Names are long: "--steps". Call before parse.
  Flag add(const std::string& name, int& value, const std::string& help);
  Flag add(const std::string& name, i64& value, const std::string& help);
  Flag add(const std::string& name, double& value, const std::string& help);  ///< NaN is refused
  Flag add(const std::string& name, std::string& value, const std::string& help);
  /// `--name` turns it on, `--no-name` off.
  Flag add(const std::string& name, bool& value, const std::string& help);
  /// A text that must be one of `valid`.
  Flag add_choice(const std::string& name, std::string& value, const std::vector<std::string>& valid,
                  const std::string& help);

  /// A rule between flags, called at the end of parse; throws UsageError.
  void add_rule(std::function<void()> rule);

  /// Fills the values. An unknown flag, a missing or a wrong value throws UsageError: one sentence with the
  /// flag, the value, what is valid and, where one is near, what was probably meant. `--help` prints and
  /// throws HelpShown.
  void parse(int argc, const char* const* argv);

  /// Whether the command line named the flag; after parse.
  bool given(const std::string& name) const;

  /// All flags by name without dashes, as text; for config.json. After parse: what was chosen.
  std::map<std::string, std::string> values() const;
  /// What --help prints.
  std::string help() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The flags that every lesson program has. Set other defaults before add_to.
struct CommonFlags {
  int ranks = 4;
  i64 steps = 100;
  i64 seed = 1;
  int threads = 0;  ///< per rank; 0 = cores / ranks
  /// What carries messages between ranks: threads or mpi. auto becomes one of them in parse: mpi under mpirun
  /// or srun, and then `ranks` is the number of processes.
  std::string backend = "auto";
  bool check_comm = true;     ///< RunOptions::check_calls
  std::string link = "none";  ///< what joins the ranks: link_from
  double deadline = 30;       ///< seconds a rank waits for the others before the run fails
  bool checked = true;        ///< catch buffers that are touched while under way, memory read unwritten
  bool buffered_send =
      true;  ///< RunOptions::buffered_send; no flag of its own: few programs let the user choose
  std::string device = "cpu";
  std::string impl = "reference";             ///< whose code of the exercise
  std::string run_dir;                        ///< empty: runs/<slug>-<time>
  bool quiet = false;                         ///< no progress line
  std::map<std::string, std::string> chosen;  ///< all flags of the program, set by parse: ranks must agree

  /// `built_impl` is whose code this program was compiled with (SHARDLINGS_IMPL): asking for the other is a
  /// UsageError that says how to get it.
  void add_to(Flags& flags, const std::string& built_impl = "reference");
};

/// The candidate nearest to `word` by edits, or "" when none is near; for "did you mean".
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

/// Says the failure on stderr; returns the exit code that main_guard states.
int say_failure(const std::exception_ptr& error);
/// Runs a program's body and turns what it throws into one sentence on stderr and an exit code:
/// UsageError 2, Todo 3 (with a hint where help is), any other exception 1, HelpShown 0; else what body
/// returns.
int main_guard(const std::function<int()>& body);
/// The same for a body that returns nothing.
template <class Body>
requires std::is_void_v<std::invoke_result_t<Body&>>
int main_guard(Body body) {
  return main_guard(std::function<int()>([&body] {
    body();
    return 0;
  }));
}

}  // namespace shardlings::run
