#pragma once
// Colours and bars, only where a person looks: nothing of it when output is a file or NO_COLOR is set.
#include <string>

namespace shardlings::lab {

enum class Colour { kGreen, kRed, kYellow, kDim, kBold };

bool is_terminal();
std::string paint(Colour colour, const std::string& text);
/// `████░░░░` of the given width, filled to done / total.
std::string bar(int done, int total, int width);
/// Every line of `text` after `indent`, at most `max_lines` of them; a last line counts what is left out.
std::string indented(const std::string& text, const std::string& indent, int max_lines);
/// Prose broken between words: each line begins with `indent` and is at most `width` bytes long where words
/// allow.
std::string wrapped(const std::string& text, const std::string& indent, size_t width);

}  // namespace shardlings::lab
