#include "lesson_test.hpp"

#include <fmt/format.h>

#include <optional>

namespace shardlings::lesson {
namespace {

bool near_ratio(double ratio, double wanted) { return std::abs(ratio - wanted) <= 1e-3 * std::abs(wanted); }

/// got = k * want in every element, with k != 1.
std::optional<double> common_ratio(const std::vector<double>& got, const std::vector<double>& want) {
  std::optional<double> ratio;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i] == 0 && got[i] == 0) continue;
    if (want[i] == 0) return std::nullopt;
    if (!ratio) ratio = got[i] / want[i];
    if (!near_ratio(got[i] / want[i], *ratio)) return std::nullopt;
  }
  if (ratio && near_ratio(*ratio, 1)) return std::nullopt;
  return ratio;
}

std::string ratio_sentence(double k, int ranks) {
  if (k == 0) return "all zero: was nothing computed, or the result not written back?";
  if (near_ratio(k, -1)) return "the sign is wrong";
  if (ranks > 1 && near_ratio(k, ranks))
    return fmt::format("{} times too large: summed but not averaged?", ranks);
  if (ranks > 1 && near_ratio(k, 1.0 / ranks)) {
    return fmt::format("{} times too small: averaged where a sum is wanted, or divided twice?", ranks);
  }
  if (near_ratio(k, 2)) return "twice too large: added twice?";
  if (near_ratio(k, 0.5)) return "half of what it should be: is one of two parts missing?";
  return k > 1 ? fmt::format("{:.6g} times too large", k) : fmt::format("{:.6g} of what it should be", k);
}

bool shifted(const std::vector<double>& got, const std::vector<double>& want, std::size_t by_got,
             std::size_t by_want) {
  if (want.size() < 3) return false;
  return std::equal(got.begin() + static_cast<std::ptrdiff_t>(by_got),
                    got.end() - static_cast<std::ptrdiff_t>(by_want),
                    want.begin() + static_cast<std::ptrdiff_t>(by_want));
}

template <class Differs>
testing::AssertionResult compare(const std::vector<double>& got, const std::vector<double>& want, int ranks,
                                 Differs&& differs) {
  if (got.size() != want.size()) {
    return testing::AssertionFailure() << got.size() << " values where " << want.size() << " are wanted";
  }
  std::size_t first = want.size(), wrong = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!differs(got[i], want[i])) continue;
    first = std::min(first, i);
    ++wrong;
  }
  if (wrong == 0) return testing::AssertionSuccess();
  const std::string hint = difference_hint(got, want, ranks);
  return testing::AssertionFailure() << fmt::format(
             "{} of {} values differ, the first at [{}]: got {}, wanted {}{}{}", wrong, want.size(), first,
             got[first], want[first], hint.empty() ? "" : "\n  ", hint);
}

}  // namespace

RunOptions test_options() {
  RunOptions options;
  options.deadline = std::chrono::seconds(10);
  return options;
}

void run_on(int ranks, const std::function<void(Rank&)>& body, const RunOptions& options) {
  run_ranks(
      ranks,
      [&](Rank& rank) {
        SCOPED_TRACE(fmt::format("rank {} of {}", rank.rank(), rank.size()));
        body(rank);
      },
      options);
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.numel()));
  for (i64 i = 0; i < tensor.numel(); ++i) values[static_cast<std::size_t>(i)] = tensor.get(i);
  return values;
}

Tensor tensor_of(Rank& rank, const std::vector<double>& values, DType dtype) {
  Tensor tensor(rank.memory, Category::activations, dtype, {static_cast<i64>(values.size())});
  for (i64 i = 0; i < tensor.numel(); ++i) tensor.set(i, values[static_cast<std::size_t>(i)]);
  return tensor;
}

std::string difference_hint(const std::vector<double>& got, const std::vector<double>& want, int ranks) {
  if (got.size() != want.size() || got.empty()) return "";
  const auto nans = std::count_if(got.begin(), got.end(), [](double x) { return std::isnan(x); });
  if (nans > 0) {
    return fmt::format("{} NaN: memory that nobody wrote, or a result read before its wait()?", nans);
  }
  if (const auto ratio = common_ratio(got, want)) return ratio_sentence(*ratio, ranks);
  if (shifted(got, want, 0, 1) || shifted(got, want, 1, 0))
    return "every value sits one place off: an index is off by one?";
  const auto first =
      static_cast<std::size_t>(std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin());
  const bool rest_zero = std::all_of(got.begin() + static_cast<std::ptrdiff_t>(first), got.end(),
                                     [](double x) { return x == 0; });
  if (first > 0 && first < got.size() && rest_zero)
    return fmt::format("zero from [{}] on: is the tail left out?", first);
  return "";
}

testing::AssertionResult same(const std::vector<double>& got, const std::vector<double>& want, int ranks) {
  return compare(got, want, ranks,
                 [](double a, double b) { return !(a == b || (std::isnan(a) && std::isnan(b))); });
}

testing::AssertionResult close_to(const std::vector<double>& got, const std::vector<double>& want,
                                  double tolerance, int ranks) {
  double scale = 1;
  for (double x : want) scale = std::max(scale, std::abs(x));
  return compare(got, want, ranks,
                 [&](double a, double b) { return !(std::abs(a - b) <= tolerance * scale); });
}

testing::AssertionResult equals_formula(i64 measured, i64 predicted, const std::string& what, int ranks) {
  if (measured == predicted) return testing::AssertionSuccess();
  std::string hint;
  if (predicted == 0) {
    hint = ": nothing was expected here";
  } else if (measured == 0) {
    hint = ": nothing was counted";
  } else if (measured % predicted == 0) {
    const i64 factor = measured / predicted;
    hint = fmt::format(": {} times the formula{}", factor,
                       factor == ranks ? ", once for each rank: nothing is shared out?" : "");
  } else {
    hint =
        fmt::format(": {} {}", std::abs(measured - predicted), measured > predicted ? "too many" : "too few");
  }
  return testing::AssertionFailure() << fmt::format("{}: measured {}, the formula says {}{}", what, measured,
                                                    predicted, hint);
}

std::vector<std::string> events_of(const Rank& rank, Event::Kind kind) {
  std::vector<std::string> texts;
  for (const Event& event : rank.trace.events()) {
    if (event.kind == kind) texts.push_back(event.what);
  }
  return texts;
}

}  // namespace shardlings::lesson
