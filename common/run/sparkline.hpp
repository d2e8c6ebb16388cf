#pragma once
// A curve in one line of text: ▁▂▃▄▅▆▇█.
#include <span>
#include <string>

namespace shardlings::run {

/// `width` characters at most; more values than that are averaged in groups. The lowest value is ▁, the
/// highest █; equal values give a flat line. NaN and infinity show as ×.
std::string sparkline(std::span<const double> values, int width);

}  // namespace shardlings::run
