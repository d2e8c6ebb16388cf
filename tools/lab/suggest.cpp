#include "lab/suggest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardlings::lab {

int edit_distance(const std::string& a, const std::string& b) {
  const size_t columns = b.size() + 1;
  std::vector<int> cost((a.size() + 1) * columns);
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      int& here = cost[i * columns + j];
      if (i == 0 || j == 0) {
        here = static_cast<int>(i + j);
        continue;
      }
      here = std::min({cost[(i - 1) * columns + j] + 1, cost[i * columns + j - 1] + 1,
                       cost[(i - 1) * columns + j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        here = std::min(here, cost[(i - 2) * columns + j - 2] + 1);
    }
  }
  return cost.back();
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  int best_distance = std::max(2, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : known) {
    // The beginning of a longer word is meant as that word: "hello" for hello_ranks.
    const bool begins = word.size() >= 3 && candidate.compare(0, word.size(), word) == 0;
    const int distance = begins ? 1 : edit_distance(word, candidate);
    // One word of two letters is as near to any other as two changes: not a suggestion.
    if (distance < best_distance && distance < static_cast<int>(word.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string unknown_sentence(const std::string& what, const std::string& word,
                             const std::vector<std::string>& known) {
  const std::string guess = nearest(word, known);
  if (!guess.empty()) return fmt::format("there is no {} \"{}\"; did you mean \"{}\"?", what, word, guess);
  return fmt::format("there is no {} \"{}\"; there are: {}", what, word, fmt::join(known, ", "));
}

}  // namespace shardlings::lab
