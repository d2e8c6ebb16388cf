// manifest check ROOT     validates lessons/manifest.json and compares it with the tree; exit code 1 when
// they disagree manifest slugs ROOT     prints the slugs in order, one a line, for scripts
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "manifest/manifest.hpp"

int main(int argc, char** argv) {
  const std::string verb = argc == 3 ? argv[1] : "";
  if (verb != "check" && verb != "slugs") {
    fmt::print(stderr, "usage: manifest check|slugs ROOT\n");
    return 2;
  }
  try {
    const std::filesystem::path root = argv[2];
    const auto manifest = shardlings::manifest::load_manifest(root / "lessons" / "manifest.json");
    if (verb == "slugs") {
      for (const auto& lesson : manifest.lessons) fmt::print("{}\n", lesson.slug);
      return 0;
    }
    const auto faults = shardlings::manifest::disagreements(manifest, root);
    for (const std::string& fault : faults) fmt::print("{}\n", fault);
    if (faults.empty()) fmt::print("{} lessons: the manifest and the tree agree\n", manifest.lessons.size());
    return faults.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
