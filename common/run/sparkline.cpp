#include "run/sparkline.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shardlings::run {

std::string sparkline(std::span<const double> values, int width) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t n = values.size();
  const std::size_t columns = std::min(n, static_cast<std::size_t>(std::max(width, 0)));
  std::vector<double> column(columns);
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t begin = c * n / columns, end = (c + 1) * n / columns;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += values[i];  // one NaN shows in its whole group
    column[c] = sum / static_cast<double>(end - begin);
    if (!std::isfinite(column[c])) continue;
    low = std::min(low, column[c]);
    high = std::max(high, column[c]);
  }
  std::string text;
  for (const double value : column) {
    if (!std::isfinite(value)) {
      text += "×";
      continue;
    }
    const double height = high > low ? (value - low) / (high - low) : 0.0;
    text += kBars[std::min<std::size_t>(7, static_cast<std::size_t>(height * 8))];
  }
  return text;
}

}  // namespace shardlings::run
