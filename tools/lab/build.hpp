#pragma once
// Builds targets of the course's build folder, one `lab` at a time (watch and check may run side by side).
#include <filesystem>
#include <string>
#include <vector>

namespace shardlings::lab {

struct BuildResult {
  bool ok = false;
  double seconds = 0;
  std::string output;  ///< of the compiler, empty when live
};

/// Builds targets (none: the default ones). `live`: the build's own output is shown as it comes.
BuildResult build_targets(const std::filesystem::path& build, const std::vector<std::string>& targets,
                          bool live);
/// What the compiler complained about, without the build tool's command lines.
std::string compiler_messages(const std::string& output);
/// The program a target makes: where CMake put it below the build folder. Throws Error if it is not there.
std::filesystem::path program_of(const std::filesystem::path& build, const std::string& target);

}  // namespace shardlings::lab
