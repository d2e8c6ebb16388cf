#pragma once
// metrics.jsonl: one line of JSON for each step. What was not measured is left out; NaN and infinity are
// written as null, because JSON has no word for them.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ledger.hpp"

namespace shardlings::run {

struct StepMetrics {
  i64 step = 0;
  std::optional<double> loss;      ///< nats per token, training batch
  std::optional<double> val_loss;  ///< nats per token
  std::optional<double> norm;      ///< of the gradient, before clipping
  std::optional<double> lr;
  std::optional<double> tokens_per_s;
  std::optional<double> ms;                          ///< wall time of the step
  std::optional<double> exposed_ms;                  ///< communication that no compute of its rank covered
  std::optional<i64> bytes_sent;                     ///< in this step, on this rank
  std::optional<std::array<i64, kCategories>> peak;  ///< bytes by category, this rank
};

/// The peaks of a ledger as StepMetrics::peak wants them.
std::array<i64, kCategories> peaks_of(const MemoryLedger& ledger);

/// Appends lines to a file; each is on disk (flushed) when write returns, so that a killed run leaves what it
/// had.
class MetricsWriter {
 public:
  /// `append` continues a file (a resumed run); else it starts empty. Error when it cannot be opened.
  explicit MetricsWriter(const std::string& path, bool append = false);
  ~MetricsWriter();
  MetricsWriter(MetricsWriter&&) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) noexcept;
  void write(const StepMetrics& metrics);  ///< Error with path and cause when the line cannot be written

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// All lines of a file. A last line that a killed run cut short is dropped; any other that cannot be read is
/// an Error with its number.
std::vector<StepMetrics> read_metrics(const std::string& path);

}  // namespace shardlings::run
