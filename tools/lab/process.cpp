#include "lab/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/error.hpp"

namespace shardlings::lab {
namespace {

std::vector<char*> pointers(const Command& command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

[[noreturn]] void start_in_child(const std::vector<char*>& argv, const ProcessOptions& options) {
  // With a deadline the child leads a group of its own, so that what it started ends with it.
  if (options.deadline.count() > 0) setpgid(0, 0);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(127);
  if (!options.log.empty()) {
    const int fd = open(options.log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0) _exit(127);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
  }
  execvp(argv[0], argv.data());
  _exit(127);
}

}  // namespace

ProcessResult run_process(const Command& command, const ProcessOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<char*> argv = pointers(command);
  const pid_t pid = fork();
  require(pid >= 0, [&] { return fmt::format("cannot start {}: {}", command[0], std::strerror(errno)); });
  if (pid == 0) start_in_child(argv, options);

  ProcessResult result;
  int status = 0;
  while (waitpid(pid, &status, options.deadline.count() > 0 ? WNOHANG : 0) == 0) {
    if (std::chrono::steady_clock::now() - begin > options.deadline) {
      result.timed_out = true;
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void hand_over(const Command& command) {
  const std::vector<char*> argv = pointers(command);
  execvp(argv[0], argv.data());
  fail(fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
}

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    if (access(fmt::format("{}/{}", folder, program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), [&] { return fmt::format("cannot read {}", path.string()); });
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace shardlings::lab
