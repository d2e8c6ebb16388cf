#include "run/run_dir.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"

namespace shardlings::run {

namespace fs = std::filesystem;

namespace {

/// The value of "key : value" in a file of /proc, or "unknown".
std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(key, 0) != 0) continue;
    const auto at = line.find_first_not_of(" \t", line.find(':') + 1);
    return at == std::string::npos ? "unknown" : line.substr(at);
  }
  return "unknown";
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

/// The commit of the course, or "unknown" outside a checkout.
std::string version() {
  std::FILE* pipe = popen("git describe --always --dirty 2>/dev/null", "r");
  if (!pipe) return "unknown";
  std::array<char, 128> text{};
  const bool read = std::fgets(text.data(), static_cast<int>(text.size()), pipe) != nullptr;
  pclose(pipe);
  std::string said = read ? text.data() : "unknown";
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return said;
}

std::string memory() {
  const double kib = std::strtod(proc_value("/proc/meminfo", "MemTotal").c_str(), nullptr);
  return fmt::format("{:.1f} GiB", kib / (1024.0 * 1024.0));
}

/// A fresh folder `parent`/`name`, with -2, -3 … behind when that is taken.
fs::path fresh(const fs::path& parent, const std::string& name) {
  for (int i = 1; i < 1000; ++i) {
    fs::path candidate = parent / (i == 1 ? name : fmt::format("{}-{}", name, i));
    if (fs::create_directory(candidate)) return candidate;
  }
  fail(fmt::format("{}: 999 runs of that name already.", (parent / name).string()));
}

/// Points `parent`/latest to a run; never leaves it missing.
void link_latest(const fs::path& parent, const fs::path& run) {
  const fs::path beside = parent / fmt::format("latest.{}", getpid());
  fs::create_directory_symlink(run.filename(), beside);
  fs::rename(beside, parent / "latest");
}

}  // namespace

Facts host_facts() {
  utsname system{};
  uname(&system);
  return {{"CPU", proc_value("/proc/cpuinfo", "model name")},
          {"cores", std::to_string(std::thread::hardware_concurrency())},
          {"memory", memory()},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
          {"compiler", compiler()},
          {"version", version()}};
}

RunDir::RunDir(const std::string& slug, const std::string& asked) : slug_(slug) {
  const fs::path parent = "runs";
  try {
    if (!asked.empty()) {
      fs::create_directories(asked);
      path_ = asked;
    } else {
      fs::create_directories(parent);
      const std::time_t now = std::time(nullptr);
      std::tm local{};
      localtime_r(&now, &local);
      std::array<char, 32> stamp{};
      std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", &local);
      const fs::path made = fresh(parent, fmt::format("{}-{}", slug, stamp.data()));
      link_latest(parent, made);
      path_ = made.string();
    }
  } catch (const fs::filesystem_error& error) {
    fail_usage(fmt::format("The folder for this run, {}, cannot be made: {}. Choose another with --run-dir.",
                           asked.empty() ? parent.string() : asked, error.code().message()));
  }
  if (access(path_.c_str(), W_OK) != 0) {
    fail_usage(
        fmt::format("The folder for this run, {}, cannot be written. Choose another with --run-dir.", path_));
  }
}

void RunDir::write_config(const std::map<std::string, std::string>& flags, const Facts& more) const {
  nlohmann::ordered_json config{{"program", slug_}};
  config["flags"] = flags;
  for (const auto& [label, value] : host_facts()) config["host"][label] = value;
  for (const auto& [label, value] : more) config["run"][label] = value;
  std::ofstream out(file("config.json"));
  out << config.dump(2) << '\n' << std::flush;
  require(out.good(), [&] { return fmt::format("{} cannot be written.", file("config.json")); });
}

}  // namespace shardlings::run
