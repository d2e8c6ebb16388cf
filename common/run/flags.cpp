#include "run/flags.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>

#include "comm/mpi/environment.hpp"
#include "core/error.hpp"

namespace shardlings::run {

namespace {

/// What is known of one flag beside CLI11's own option.
struct Entry {
  std::string name;
  std::string type;  // "INT", as the help shows it
  std::string kind;  // "a whole number", as a sentence needs it
  std::string help;
  std::function<std::string()> text;  // the value now
  std::string by_default{};
  std::optional<double> at_least{}, above{}, at_most{};

  std::string limits() const {
    std::string said;
    const auto say = [&](const char* word, const std::optional<double>& limit) {
      if (limit) said += fmt::format("{}{} {}", said.empty() ? "" : " and ", word, *limit);
    };
    say("at least", at_least);
    say("above", above);
    say("at most", at_most);
    return said;
  }
  void check(const std::string& text_given, double value) const {
    const bool bad =
        (at_least && value < *at_least) || (above && value <= *above) || (at_most && value > *at_most);
    if (bad) fail_usage(fmt::format("{} {}: must be {}.", name, text_given, limits()));
  }
  [[noreturn]] void wrong(const std::string& given) const {
    fail_usage(fmt::format("{} \"{}\": must be {} (default: {}).", name, given, kind, by_default));
  }
};

i64 to_integer(const Entry& entry, const std::string& given, i64 smallest, i64 largest) {
  errno = 0;
  char* end = nullptr;
  const long long value = std::strtoll(given.c_str(), &end, 10);
  if (given.empty() || *end != '\0') entry.wrong(given);
  if (errno == ERANGE || value < smallest || value > largest) {
    fail_usage(fmt::format("{} {}: must be between {} and {}.", entry.name, given, smallest, largest));
  }
  entry.check(given, static_cast<double>(value));
  return value;
}

double to_real(const Entry& entry, const std::string& given) {
  char* end = nullptr;
  const double value = std::strtod(given.c_str(), &end);
  if (given.empty() || *end != '\0' || std::isnan(value)) entry.wrong(given);
  entry.check(given, value);
  return value;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

constexpr std::size_t kHelpColumn = 28;

}  // namespace

struct Flags::Impl {
  CLI::App app;
  std::vector<std::unique_ptr<Entry>> entries;
  std::vector<std::function<void()>> rules;

  Impl(const std::string& program, const std::string& description) : app(description, program) {
    app.allow_extras();  // so that the sentence about an unknown flag is ours
    app.set_help_flag("-h,--help", "Show this help and exit");
  }
  Entry& entry(Entry entry) {
    entry.by_default = entry.text();
    entries.push_back(std::make_unique<Entry>(std::move(entry)));
    return *entries.back();
  }
  void option(const Entry& entry, const std::function<void(const std::string&)>& set) {
    app.add_option_function<std::string>(entry.name, set);
  }
  const Entry* find(const std::string& name) const {
    for (const auto& e : entries) {
      if (e->name == name) return e.get();
    }
    return nullptr;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all{"--help"};
    for (const auto& e : entries) all.push_back(e->name);
    return all;
  }
  [[noreturn]] void unknown(const std::string& word) const {
    if (word.rfind('-', 0) != 0) {
      fail_usage(fmt::format("\"{}\" is not expected here: {} takes only flags (see --help).", word,
                             app.get_name()));
    }
    const std::string flag = word.substr(0, word.find('='));
    const std::string near = nearest(flag, names());
    const std::string meant = near.empty() ? "" : fmt::format(" Did you mean {}?", near);
    fail_usage(fmt::format("Unknown flag {}.{} Valid: {}.", flag, meant, joined(names())));
  }
};

Flags::Flag& Flags::Flag::at_least(double limit) {
  static_cast<Entry*>(entry_)->at_least = limit;
  return *this;
}
Flags::Flag& Flags::Flag::above(double limit) {
  static_cast<Entry*>(entry_)->above = limit;
  return *this;
}
Flags::Flag& Flags::Flag::at_most(double limit) {
  static_cast<Entry*>(entry_)->at_most = limit;
  return *this;
}

Flags::Flags(const std::string& program, const std::string& description)
    : impl_(std::make_unique<Impl>(program, description)) {}
Flags::~Flags() = default;

Flags::Flag Flags::add(const std::string& name, int& value, const std::string& help) {
  Entry& entry =
      impl_->entry({name, "INT", "a whole number", help, [&value] { return std::to_string(value); }});
  impl_->option(entry, [&entry, &value](const std::string& given) {
    using Limits = std::numeric_limits<int>;
    value = static_cast<int>(to_integer(entry, given, Limits::min(), Limits::max()));
  });
  return Flag(&entry);
}

Flags::Flag Flags::add(const std::string& name, i64& value, const std::string& help) {
  Entry& entry =
      impl_->entry({name, "INT", "a whole number", help, [&value] { return std::to_string(value); }});
  impl_->option(entry, [&entry, &value](const std::string& given) {
    using Limits = std::numeric_limits<i64>;
    value = to_integer(entry, given, Limits::min(), Limits::max());
  });
  return Flag(&entry);
}

Flags::Flag Flags::add(const std::string& name, double& value, const std::string& help) {
  Entry& entry =
      impl_->entry({name, "NUMBER", "a number", help, [&value] { return fmt::format("{}", value); }});
  impl_->option(entry, [&entry, &value](const std::string& given) { value = to_real(entry, given); });
  return Flag(&entry);
}

Flags::Flag Flags::add(const std::string& name, std::string& value, const std::string& help) {
  Entry& entry = impl_->entry({name, "TEXT", "a text", help, [&value] { return value; }});
  impl_->option(entry, [&value](const std::string& given) { value = given; });
  return Flag(&entry);
}

Flags::Flag Flags::add(const std::string& name, bool& value, const std::string& help) {
  Entry& entry = impl_->entry({name, "", "on or off", help, [&value] { return value ? "true" : "false"; }});
  impl_->app.add_flag(fmt::format("{},!--no-{}", name, name.substr(2)), value);
  return Flag(&entry);
}

Flags::Flag Flags::add_choice(const std::string& name, std::string& value,
                              const std::vector<std::string>& valid, const std::string& help) {
  const std::string type = fmt::format("{}", fmt::join(valid, "|"));
  Entry& entry = impl_->entry({name, type, "one of " + joined(valid), help, [&value] { return value; }});
  impl_->option(entry, [&entry, &value, valid](const std::string& given) {
    if (std::find(valid.begin(), valid.end(), given) == valid.end()) {
      const std::string near = nearest(given, valid);
      const std::string meant = near.empty() ? "" : fmt::format(" Did you mean {}?", near);
      fail_usage(fmt::format("{} \"{}\": must be {}.{}", entry.name, given, entry.kind, meant));
    }
    value = given;
  });
  return Flag(&entry);
}

void Flags::add_rule(std::function<void()> rule) { impl_->rules.push_back(std::move(rule)); }

void Flags::parse(int argc, const char* const* argv) {
  try {
    impl_->app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(help().c_str(), stdout);
    throw HelpShown{};
  } catch (const CLI::ArgumentMismatch& mismatch) {
    // CLI11 names the flag first: "--steps: 1 required TEXT missing".
    const std::string said = mismatch.what();
    const Entry* entry = impl_->find(said.substr(0, said.find(':')));
    if (!entry) fail_usage(said + ".");
    int times = 0;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      times += word.substr(0, word.find('=')) == entry->name;
    }
    if (times > 1) fail_usage(fmt::format("{} is given {} times; once is meant.", entry->name, times));
    fail_usage(
        fmt::format("{} needs a value: {} (default: {}).", entry->name, entry->kind, entry->by_default));
  } catch (const CLI::ConversionError&) {  // all texts are converted here but for those of on/off flags
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const Entry* entry = impl_->find(word.substr(0, word.find('=')));
      if (entry && entry->type.empty() && word != entry->name) {
        fail_usage(fmt::format("{}: {} is on or off; say {} or --no-{}.", word, entry->name, entry->name,
                               entry->name.substr(2)));
      }
    }
    throw;
  } catch (const CLI::ParseError& error) {
    fail_usage(fmt::format("{}: {} (see --help).", impl_->app.get_name(), error.what()));
  }
  const auto rest = impl_->app.remaining();
  const auto flag = std::find_if(rest.begin(), rest.end(), [](const auto& word) { return word[0] == '-'; });
  if (flag != rest.end()) impl_->unknown(*flag);
  if (!rest.empty()) impl_->unknown(rest.front());
  for (const auto& rule : impl_->rules) rule();
}

bool Flags::given(const std::string& name) const { return impl_->app.count(name) > 0; }

std::map<std::string, std::string> Flags::values() const {
  std::map<std::string, std::string> all;
  for (const auto& e : impl_->entries) all[e->name.substr(2)] = e->text();
  return all;
}

std::string Flags::help() const {
  std::string text = fmt::format("{}: {}\n\n", impl_->app.get_name(), impl_->app.get_description());
  const auto say = [&text](const std::string& left, const std::string& right) {
    const bool fits = left.size() <= kHelpColumn;
    text += fmt::format("  {:<{}}{}\n", left, fits ? kHelpColumn : left.size(),
                        fits ? right : fmt::format("\n  {:<{}}{}", "", kHelpColumn, right));
  };
  for (const auto& e : impl_->entries) {
    const std::string limits = e->limits();
    const std::string shown = e->type.empty() ? (e->by_default == "true" ? "on" : "off") : e->by_default;
    say(e->type.empty() ? fmt::format("{}, --no-{}", e->name, e->name.substr(2)) : e->name + " " + e->type,
        fmt::format("{}{}{}", e->help, limits.empty() ? "" : "; " + limits,
                    shown.empty() ? "" : fmt::format(" [{}]", shown)));
  }
  say("-h, --help", "Show this help and exit");
  return text;
}

namespace {

// From the environment: threads or processes, and how many.
void settle_backend(CommonFlags& common, bool ranks_given, bool link_given) {
  const std::optional<MpiEnvironment> job = mpi_environment();
  if (!job) {
    if (common.backend == "mpi")
      fail_usage(
          fmt::format("--backend mpi: ranks are processes, which mpirun or srun starts: mpirun -n {} "
                      "PROGRAM FLAGS (more ranks than cores: --oversubscribe; as root: "
                      "--allow-run-as-root). docs/mpi.md has more.",
                      common.ranks));
    common.backend = "threads";
    return;
  }
  if (common.backend == "threads") {
    if (job->size > 1)
      fail_usage(
          fmt::format("--backend threads: {} started {} processes, and each would train all ranks; start "
                      "the program without it.",
                      job->launcher, job->size));
    return;
  }
  if (!built_with_mpi())
    fail_usage("This build has no MPI. Install libopenmpi-dev and openmpi-bin, and run ./lab setup.");
  common.backend = "mpi";
  if (ranks_given && job->size > 0 && common.ranks != job->size)
    fail_usage(fmt::format("--ranks {}: {} started {} process{}, and each is one rank; leave --ranks out.",
                           common.ranks, job->launcher, job->size, job->size == 1 ? "" : "es"));
  if (job->size > 0) common.ranks = job->size;
  if (!link_given) common.link = "none";  // between processes the link is what it is; only threads pretend
}

}  // namespace

void CommonFlags::add_to(Flags& flags, const std::string& built_impl) {
  impl = built_impl;
  flags.add("--ranks", ranks, "How many ranks train together").at_least(1);
  flags.add("--steps", steps, "Optimizer steps").at_least(0);
  flags.add("--seed", seed, "Seed of everything that is drawn at random").at_least(0);
  flags.add("--threads", threads, "Compute threads per rank; 0 = cores / ranks").at_least(0);
  flags.add_choice("--backend", backend, {"auto", "threads", "mpi"},
                   "What carries messages between ranks; auto: mpi under mpirun or srun, else threads");
  flags.add(
      "--link", link,
      "Pretend that ranks are joined by none, nvlink4, pcie4, ib-ndr, eth10g, eth1g, or microseconds,GB/s");
  flags.add("--deadline", deadline, "Seconds a rank waits for the others before the run fails").above(0);
  flags.add("--check-comm", check_comm, "Processes compare their calls before data move (threads always do)");
  flags.add("--checked", checked, "Catch buffers that are touched while an operation is under way");
  flags.add_choice("--device", device, {"cpu"}, "Where ranks compute");
  flags.add_choice("--impl", impl, {"reference", "yours"}, "Whose code of the exercise");
  flags.add("--run-dir", run_dir, "Folder for what the run leaves; empty: runs/<slug>-<time>");
  flags.add("--quiet", quiet, "No progress line");
  flags.add_rule([this, &flags] {
    settle_backend(*this, flags.given("--ranks"), flags.given("--link"));
    chosen = flags.values();
  });
  flags.add_rule([this, built_impl] {
    if (impl == built_impl) return;
    fail_usage(fmt::format(
        "--impl {}: this program was built with --impl {}; `./lab run` builds the one you ask for.", impl,
        built_impl));
  });
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  const auto distance = [](const std::string& a, const std::string& b) {  // Levenshtein
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      }
    }
    return row.back();
  };
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;  // farther is not a slip of the finger
  for (const auto& candidate : candidates) {
    const std::size_t d = distance(word, candidate);
    if (d < least) {
      least = d;
      best = candidate;
    }
  }
  return best;
}

int say_failure(const std::exception_ptr& error) {
  const auto say = [](const std::string& sentence) {
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", sentence);
    std::fflush(stderr);
  };
  try {
    std::rethrow_exception(error);
  } catch (const HelpShown&) {
    return 0;
  } catch (const FailureShown& shown) {
    return shown.code;
  } catch (const UsageError& usage) {
    say(usage.what());
    return 2;
  } catch (const Todo& todo) {
    say(fmt::format("{}\nThis gap is yours to fill. `./lab hint` helps.", todo.what()));
    return 3;
  } catch (const std::exception& failure) {
    say(failure.what());
    return 1;
  }
}

int main_guard(const std::function<int()>& body) {
  try {
    return body();
  } catch (...) {
    return say_failure(std::current_exception());
  }
}

}  // namespace shardlings::run
