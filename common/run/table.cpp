#include "run/table.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace shardlings::run {

namespace {

/// Characters on the screen: bytes that do not continue a UTF-8 character.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string left(const std::string& text, std::size_t width) {
  return text + std::string(width - width_of(text), ' ');
}
std::string right(const std::string& text, std::size_t width) {
  return std::string(width - width_of(text), ' ') + text;
}

const char* sign_of(TableRow::Verdict verdict) {
  switch (verdict) {
    case TableRow::Verdict::equal:
      return "✓";
    case TableRow::Verdict::different:
      return "✗";
    case TableRow::Verdict::not_judged:
      return "";
  }
  return "";
}

}  // namespace

TableRow::Verdict TableRow::verdict() const {
  if (!predicted || !tolerance) return Verdict::not_judged;
  // Written so that NaN differs from everything.
  const bool equal = std::abs(measured - *predicted) <= *tolerance * std::abs(*predicted);
  return equal ? Verdict::equal : Verdict::different;
}

void Table::bytes(const std::string& name, i64 predicted, i64 measured) {
  count(name, predicted, measured, "B");
}

void Table::count(const std::string& name, i64 predicted, i64 measured, const std::string& unit) {
  rows_.push_back({name, static_cast<double>(predicted), static_cast<double>(measured), unit, true, 0.0});
}

void Table::value(const std::string& name, double predicted, double measured, const std::string& unit,
                  std::optional<double> tolerance) {
  rows_.push_back({name, predicted, measured, unit, false, tolerance});
}

void Table::measured(const std::string& name, double value, const std::string& unit) {
  rows_.push_back({name, {}, value, unit, false, {}});
}

bool Table::all_equal() const {
  return std::none_of(rows_.begin(), rows_.end(),
                      [](const TableRow& row) { return row.verdict() == TableRow::Verdict::different; });
}

std::string Table::text() const {
  struct Line {
    std::string name, predicted, measured, unit, sign;
  };
  std::vector<Line> lines{{"", "predicted", "measured", "", ""}};
  for (const TableRow& row : rows_) {
    lines.push_back({row.name, row.predicted ? number_text(*row.predicted, row.whole) : "",
                     number_text(row.measured, row.whole), row.unit, sign_of(row.verdict())});
  }
  std::size_t name = 0, predicted = 0, measured = 0, unit = 0;
  for (const Line& line : lines) {
    name = std::max(name, width_of(line.name));
    predicted = std::max(predicted, width_of(line.predicted));
    measured = std::max(measured, width_of(line.measured));
    unit = std::max(unit, width_of(line.unit));
  }
  std::string text;
  for (const Line& line : lines) {
    std::string shown =
        fmt::format("{}  {} | {}  {} {}", left(line.name, name), right(line.predicted, predicted),
                    right(line.measured, measured), left(line.unit, unit), line.sign);
    shown.erase(shown.find_last_not_of(' ') + 1);
    text += shown + "\n";
  }
  for (const TableRow& row : rows_) {
    if (row.verdict() != TableRow::Verdict::different) continue;
    text += fmt::format("{}: measured {} {} than predicted.\n", row.name,
                        number_text(std::abs(row.measured - *row.predicted), row.whole) + " " + row.unit,
                        row.measured > *row.predicted ? "more" : "less");
  }
  return text;
}

std::string number_text(double value, bool whole) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (!whole && std::abs(value) < 1000) return fmt::format("{:.4g}", value);
  std::string digits = fmt::format("{:.{}f}", std::abs(value), whole ? 0 : 1);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  for (std::size_t at = point; at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return (value < 0 ? "-" : "") + digits;
}

}  // namespace shardlings::run
