#pragma once
// predicted | measured: what the formula says beside what the library counted. Bytes and counts must be equal
// exactly.
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"

namespace shardlings::run {

struct TableRow {
  std::string name;
  std::optional<double> predicted;  ///< nothing: there is no formula, only a measurement
  double measured = 0;
  std::string unit;    ///< "B", "calls", "ms", …
  bool whole = false;  ///< a whole number: printed to the last digit
  /// How far apart the two may be, relative to the prediction; 0 = equal. Nothing: shown, not judged.
  std::optional<double> tolerance;

  enum class Verdict { equal, different, not_judged };
  Verdict verdict() const;
};

class Table {
 public:
  void bytes(const std::string& name, i64 predicted, i64 measured);
  void count(const std::string& name, i64 predicted, i64 measured, const std::string& unit = "calls");
  /// Judged within a relative tolerance; without one only shown.
  void value(const std::string& name, double predicted, double measured, const std::string& unit,
             std::optional<double> tolerance = {});
  /// A measurement that no formula predicts.
  void measured(const std::string& name, double value, const std::string& unit);

  const std::vector<TableRow>& rows() const { return rows_; }
  /// Whether every judged row is equal; what a program's exit code says.
  bool all_equal() const;
  /// For the terminal; columns aligned, ✓ or ✗ behind each judged row, and a sentence about those that
  /// differ.
  std::string text() const;

 private:
  std::vector<TableRow> rows_;
};

/// "43,376,640" for whole numbers, else four significant digits ("0.01234", "1,234.5").
std::string number_text(double value, bool whole);

}  // namespace shardlings::run
