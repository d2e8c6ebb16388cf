#include "lab/build.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <sstream>

#include "core/error.hpp"
#include "lab/process.hpp"

namespace shardlings::lab {
namespace {

/// Held while the build tool runs: two of them in one folder spoil each other's notes.
class BuildLock {
 public:
  explicit BuildLock(const std::filesystem::path& build)
      : fd_(open((build / ".lab-build-lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    require(fd_ >= 0, [&] { return fmt::format("cannot write in {}; run ./lab setup", build.string()); });
    flock(fd_, LOCK_EX);
  }
  ~BuildLock() { close(fd_); }
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;

 private:
  int fd_;
};

}  // namespace

BuildResult build_targets(const std::filesystem::path& build, const std::vector<std::string>& targets,
                          bool live) {
  const BuildLock lock(build);
  Command command{"cmake", "--build", build.string()};
  if (!targets.empty()) command.emplace_back("--target");
  command.insert(command.end(), targets.begin(), targets.end());
  ProcessOptions options;
  if (!live) options.log = build / "lab-build.log";
  const ProcessResult process = run_process(command, options);
  return {process.ok(), process.seconds, live ? "" : read_file(options.log)};
}

std::string compiler_messages(const std::string& output) {
  std::istringstream lines(output);
  std::string line, kept;
  while (std::getline(lines, line)) {
    const bool progress =
        line.rfind('[', 0) == 0 || line.rfind("ninja:", 0) == 0 || line.rfind("FAILED:", 0) == 0;
    const bool command_line =
        line.find(" -o ") != std::string::npos && line.find(" -c ") != std::string::npos;
    if (!progress && !command_line) kept += line + "\n";
  }
  return kept;
}

std::filesystem::path program_of(const std::filesystem::path& build, const std::string& target) {
  for (const char* folder : {"bin", "lessons", "tests", "tools", "."}) {
    if (auto path = build / folder / target; std::filesystem::is_regular_file(path)) return path;
  }
  fail(fmt::format("target {} was built, but there is no program of that name in {}/bin", target,
                   build.string()));
}

}  // namespace shardlings::lab
