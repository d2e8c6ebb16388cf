// stubgen stub SOLUTION OUT            the learner's file of a solution
// stubgen mutant SOLUTION MUTANT OUT   a solution with a mutant's regions
// stubgen refresh SOLUTION OUT KEEP    stub, but an OUT that differs is first copied into the folder KEEP
// Exit code 2 with "file:line: what is wrong" when the markers are.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "stubgen/markers.hpp"

namespace {
namespace fs = std::filesystem;
using shardlings::stubgen::make_mutant;
using shardlings::stubgen::make_stub;
using shardlings::stubgen::MarkerError;

std::optional<std::string> read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string read_or_fail(const fs::path& path) {
  auto text = read(path);
  if (!text) throw MarkerError(fmt::format("{}:1: cannot be read", path.string()));
  return *std::move(text);
}

/// An unchanged file keeps its time, so that nothing that includes it is built again.
void write_if_changed(const fs::path& path, const std::string& text) {
  if (read(path) == text) return;
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw MarkerError(fmt::format("{}:1: cannot be written", path.string()));
}

void keep_copy(const fs::path& path, const std::string& next, const fs::path& folder) {
  const auto old = read(path);
  if (!old || *old == next) return;
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const fs::path copy =
      folder / fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::localtime(now), path.filename().string());
  write_if_changed(copy, *old);
  fmt::print("{} differed: the old one is kept as {}\n", path.string(), copy.string());
}

int usage() {
  fmt::print(
      stderr,
      "usage: stubgen stub SOLUTION OUT | stubgen mutant SOLUTION MUTANT OUT | stubgen refresh SOLUTION OUT "
      "KEEP_FOLDER\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    if (args.size() == 3 && args[0] == "stub") {
      write_if_changed(args[2], make_stub(args[1], read_or_fail(args[1])));
    } else if (args.size() == 4 && args[0] == "mutant") {
      write_if_changed(args[3], make_mutant(args[1], read_or_fail(args[1]), args[2], read_or_fail(args[2])));
    } else if (args.size() == 4 && args[0] == "refresh") {
      const std::string text = make_stub(args[1], read_or_fail(args[1]));
      keep_copy(args[2], text, args[3]);
      write_if_changed(args[2], text);
    } else {
      return usage();
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
