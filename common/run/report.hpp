#pragma once
// report.html: one file that opens without a network. Loss, what each rank did when, memory by category,
// predicted against measured, the configuration, and what the model writes.
#include <string>
#include <utility>
#include <vector>

#include "run/metrics.hpp"
#include "run/run_dir.hpp"
#include "run/table.hpp"
#include "run/trace_json.hpp"

namespace shardlings::run {

struct Curve {
  std::string name;  ///< "train", "validation", or with the run: "4 ranks: train"
  std::vector<std::pair<double, double>> points;  ///< (x, y), x rising
  bool dashed = false;
};

/// A chart of lines beside the loss: speed-up over ranks, norm over steps.
struct Figure {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  bool log_x = false, log_y = false;
};

/// A text that the model wrote, or anything else to be shown as it is.
struct Sample {
  std::string title, text;
};

struct Report {
  std::string title, subtitle;
  Facts config;               ///< flags, model, host: shown as a table
  std::vector<Curve> curves;  ///< loss over steps; add_run fills it
  std::vector<Figure> figures;
  std::vector<RankRecord> ranks;  ///< timeline, memory, exposed communication
  std::vector<TableRow> rows;     ///< Table::rows()
  std::vector<Sample> samples;
};

/// Adds the curves of one run: training loss, and validation loss where it was measured. Several runs lie
/// over one another; `run` tells them apart ("" for a single one).
void add_run(Report& report, const std::string& run, const std::vector<StepMetrics>& metrics);
/// The facts of config.json: flags, then the host's.
Facts facts_of(const std::map<std::string, std::string>& flags);

/// Writes the page. When the chart library (data/echarts, fetched at set-up) is missing, the page says so and
/// has tables only; returns whether it has charts. Error when the file cannot be written.
bool write_report(const std::string& path, const Report& report);
/// What a program leaves at its end: trace.json (of report.ranks) and report.html in its folder; prints both
/// paths.
void leave_pictures(const RunDir& folder, const Report& report);

}  // namespace shardlings::run
