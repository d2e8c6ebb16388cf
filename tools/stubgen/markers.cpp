#include "stubgen/markers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

namespace shardlings::stubgen {
namespace {

[[noreturn]] void fail_at(const std::string& path, int line, const std::string& what) {
  throw MarkerError(fmt::format("{}:{}: {}", path, line, what));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_';
  });
}

bool has_code(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    const std::string text = trimmed(line);
    return !text.empty() && text.rfind("//", 0) != 0;
  });
}

/// A line `// SOLUTION VERB rest`, alone on its line.
struct Marker {
  std::string indent, verb, rest;
  explicit operator bool() const { return !verb.empty(); }
};

Marker marker_on(const std::string& path, int number, const std::string& line, std::string_view word,
                 std::initializer_list<std::string_view> verbs) {
  const std::string opening = fmt::format("// {} ", word);
  const auto at = line.find(opening);
  if (at == std::string::npos) return {};
  if (line.find_first_not_of(" \t") != at) {
    fail_at(path, number, fmt::format("a '// {}' marker must be alone on its line", word));
  }
  std::istringstream in(line.substr(at + opening.size()));
  Marker marker;
  marker.indent = line.substr(0, at);
  in >> marker.verb;
  if (std::find(verbs.begin(), verbs.end(), marker.verb) == verbs.end()) {
    fail_at(path, number,
            fmt::format("'// {} {}' is no marker; there are {}", word, marker.verb, fmt::join(verbs, ", ")));
  }
  if (in.get() == ' ') std::getline(in, marker.rest);  // the rest keeps its own indentation
  return marker;
}

/// Walks a solution: region(begin marker, region) for each region, plain(line) for each line outside.
template <class OnRegion, class OnLine>
std::vector<Region> walk(const std::string& path, const std::string& text, OnRegion&& on_region,
                         OnLine&& on_line) {
  std::vector<Region> regions;
  std::set<std::string> names;
  Marker open;
  int number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    if (line.find("// YOUR CODE ") != std::string::npos) {
      fail_at(path, number,
              "'// YOUR CODE' belongs to a generated exercise; a solution has '// SOLUTION' markers");
    }
    const Marker marker = marker_on(path, number, line, "SOLUTION", {"BEGIN", "STUB", "END"});
    if (!marker && !open) on_line(line);
    if (!marker && open) regions.back().body.push_back(line);
    if (!marker) continue;
    const std::string rest = trimmed(marker.rest);
    if (marker.verb == "BEGIN") {
      if (open)
        fail_at(path, number,
                fmt::format("region '{}' begins inside region '{}'", rest, regions.back().name));
      if (!is_name(rest)) {
        fail_at(path, number, fmt::format("'{}' is no region name (small letters, digits, _)", rest));
      }
      if (!names.insert(rest).second) fail_at(path, number, fmt::format("region '{}' appears twice", rest));
      open = marker;
      regions.push_back({rest, number, {}, {}});
      continue;
    }
    if (!open) fail_at(path, number, fmt::format("'// SOLUTION {}' outside of a region", marker.verb));
    Region& region = regions.back();
    if (marker.verb == "STUB") {
      if (rest.empty()) fail_at(path, number, "'// SOLUTION STUB' without a line of code");
      region.stub.push_back(marker.indent + marker.rest);
      continue;
    }
    if (!has_code(region.body))
      fail_at(path, region.line, fmt::format("region '{}' has no code", region.name));
    const bool todo = std::any_of(region.stub.begin(), region.stub.end(), [](const std::string& stub) {
      return stub.find("LAB_TODO(\"") != std::string::npos;
    });
    if (!todo) {
      fail_at(path, region.line,
              fmt::format("region '{}' needs a '// SOLUTION STUB LAB_TODO(\"…\");' line", region.name));
    }
    on_region(open, region);
    open = {};
  }
  if (open) {
    fail_at(path, regions.back().line,
            fmt::format("region '{}' has no '// SOLUTION END'", regions.back().name));
  }
  if (regions.empty()) fail_at(path, number, "no '// SOLUTION BEGIN' region in this file");
  return regions;
}

void append(std::string& out, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) out += line + "\n";
}

std::map<std::string, std::vector<std::string>> mutant_regions(const std::string& path,
                                                               const std::string& text) {
  std::map<std::string, std::vector<std::string>> regions;
  std::string open, story;
  int number = 0, opened = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    const Marker marker = marker_on(path, number, line, "MUTANT", {"BEGIN", "END"});
    const std::string rest = trimmed(marker.rest);
    if (marker.verb == "BEGIN") {
      if (!open.empty())
        fail_at(path, number, fmt::format("region '{}' begins inside region '{}'", rest, open));
      if (!regions.emplace(rest, std::vector<std::string>{}).second) {
        fail_at(path, number, fmt::format("region '{}' appears twice", rest));
      }
      if (!is_name(rest)) fail_at(path, number, fmt::format("'{}' is no region name", rest));
      open = rest;
      opened = number;
    } else if (marker.verb == "END") {
      if (open.empty()) fail_at(path, number, "'// MUTANT END' outside of a region");
      if (!has_code(regions[open])) fail_at(path, opened, fmt::format("region '{}' has no code", open));
      open.clear();
    } else if (!open.empty()) {
      regions[open].push_back(line);
    } else if (const std::string text_line = trimmed(line); text_line.rfind("//", 0) == 0) {
      if (regions.empty()) story += trimmed(text_line.substr(2));
    } else if (!text_line.empty()) {
      fail_at(path, number, "code outside of '// MUTANT BEGIN region' … '// MUTANT END' would be lost");
    }
  }
  if (!open.empty()) fail_at(path, opened, fmt::format("region '{}' has no '// MUTANT END'", open));
  if (regions.empty()) fail_at(path, number, "no '// MUTANT BEGIN region' in this file");
  if (story.empty()) fail_at(path, 1, "a mutant starts with a comment that tells its story");
  return regions;
}

}  // namespace

std::vector<Region> regions_of(const std::string& path, const std::string& text) {
  return walk(
      path, text, [](const Marker&, const Region&) {}, [](const std::string&) {});
}

std::string make_stub(const std::string& path, const std::string& text) {
  std::string out;
  const auto on_region = [&](const Marker& open, const Region& region) {
    out += fmt::format("{}// YOUR CODE BEGIN {}\n", open.indent, region.name);
    append(out, region.stub);
    out += fmt::format("{}// YOUR CODE END\n", open.indent);
  };
  walk(path, text, on_region, [&](const std::string& line) { out += line + "\n"; });
  return out;
}

std::string make_mutant(const std::string& solution_path, const std::string& solution,
                        const std::string& mutant_path, const std::string& mutant) {
  auto changed = mutant_regions(mutant_path, mutant);
  std::string out;
  const auto on_region = [&](const Marker& open, const Region& region) {
    const auto change = changed.find(region.name);
    if (change != changed.end() && change->second == region.body) {
      fail_at(mutant_path, 1, fmt::format("region '{}' equals the solution's", region.name));
    }
    out += fmt::format("{}// {} BEGIN {}\n", open.indent, change == changed.end() ? "SOLUTION" : "MUTANT",
                       region.name);
    append(out, change == changed.end() ? region.body : change->second);
    out += fmt::format("{}// {} END\n", open.indent, change == changed.end() ? "SOLUTION" : "MUTANT");
    if (change != changed.end()) changed.erase(change);
  };
  const auto regions =
      walk(solution_path, solution, on_region, [&](const std::string& line) { out += line + "\n"; });
  if (!changed.empty()) {
    std::vector<std::string> names;
    names.reserve(regions.size());
    for (const Region& region : regions) names.push_back(region.name);
    fail_at(mutant_path, 1,
            fmt::format("region '{}' is not in {}, which has: {}", changed.begin()->first, solution_path,
                        fmt::join(names, ", ")));
  }
  return out;
}

}  // namespace shardlings::stubgen
