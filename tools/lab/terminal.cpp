#include "lab/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace shardlings::lab {

bool is_terminal() {
  static const bool terminal = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return terminal;
}

std::string paint(Colour colour, const std::string& text) {
  if (!is_terminal()) return text;
  const char* code = "";
  switch (colour) {
    case Colour::kGreen:
      code = "32";
      break;
    case Colour::kRed:
      code = "31";
      break;
    case Colour::kYellow:
      code = "33";
      break;
    case Colour::kDim:
      code = "2";
      break;
    case Colour::kBold:
      code = "1";
      break;
  }
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::string bar(int done, int total, int width) {
  const int filled = total > 0 ? width * done / total : 0;
  std::string text;
  for (int i = 0; i < width; ++i) text += i < filled ? "█" : "░";
  return text;
}

std::string indented(const std::string& text, const std::string& indent, int max_lines) {
  std::istringstream lines(text);
  std::string line, out;
  int count = 0;
  while (std::getline(lines, line)) {
    if (++count <= max_lines) out += indent + line + "\n";
  }
  if (count > max_lines) out += fmt::format("{}… {} more lines\n", indent, count - max_lines);
  return out;
}

std::string wrapped(const std::string& text, const std::string& indent, size_t width) {
  std::istringstream words(text);
  std::string word, line = indent, out;
  while (words >> word) {
    if (line.size() > indent.size() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
  }
  return out + line + "\n";
}

}  // namespace shardlings::lab
