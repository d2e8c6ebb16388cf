#pragma once
// The folder that a run leaves: config.json, metrics.jsonl, trace.json, report.html, checkpoints.
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shardlings::run {

/// Label and value, in the order in which they are shown.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// What the numbers depend on: CPU, cores, memory, compiler, system, version of the course.
Facts host_facts();

/// Creates the folder at once, so that an unwritable place is known before training.
class RunDir {
 public:
  /// runs/<slug>-<date>-<time>/ below the current folder (a number is added when that is taken), and
  /// runs/latest as a link to it. With `asked` (--run-dir) exactly that folder, which may exist, and no link.
  /// UsageError when the folder cannot be made or written.
  explicit RunDir(const std::string& slug, const std::string& asked = "");

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  /// config.json: all flags as they were understood, the host's facts and `more`. Error when it cannot be
  /// written.
  void write_config(const std::map<std::string, std::string>& flags, const Facts& more = {}) const;

 private:
  std::string slug_, path_;
};

}  // namespace shardlings::run
