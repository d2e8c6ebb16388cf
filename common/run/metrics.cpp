#include "run/metrics.hpp"

#include <fmt/format.h>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace shardlings::run {

namespace {

using Json = nlohmann::ordered_json;

void put(Json& line, const char* key, const std::optional<double>& value) {
  if (!value) return;
  if (std::isfinite(*value))
    line[key] = *value;
  else
    line[key] = nullptr;
}

void take(const Json& line, const char* key, std::optional<double>& value) {
  if (!line.contains(key)) return;
  value = line[key].is_null() ? std::numeric_limits<double>::quiet_NaN() : line[key].get<double>();
}

Json to_json(const StepMetrics& m) {
  Json line{{"step", m.step}};
  put(line, "loss", m.loss);
  put(line, "val_loss", m.val_loss);
  put(line, "norm", m.norm);
  put(line, "lr", m.lr);
  put(line, "tokens_per_s", m.tokens_per_s);
  put(line, "ms", m.ms);
  put(line, "exposed_ms", m.exposed_ms);
  if (m.bytes_sent) line["bytes_sent"] = *m.bytes_sent;
  if (m.peak) {
    for (int c = 0; c < kCategories; ++c) {
      line["peak"][name_of(static_cast<Category>(c))] = (*m.peak)[static_cast<std::size_t>(c)];
    }
  }
  return line;
}

StepMetrics from_json(const Json& line) {
  StepMetrics m;
  m.step = line.at("step").get<i64>();
  take(line, "loss", m.loss);
  take(line, "val_loss", m.val_loss);
  take(line, "norm", m.norm);
  take(line, "lr", m.lr);
  take(line, "tokens_per_s", m.tokens_per_s);
  take(line, "ms", m.ms);
  take(line, "exposed_ms", m.exposed_ms);
  if (line.contains("bytes_sent")) m.bytes_sent = line["bytes_sent"].get<i64>();
  if (line.contains("peak")) {
    m.peak.emplace();
    for (int c = 0; c < kCategories; ++c) {
      (*m.peak)[static_cast<std::size_t>(c)] = line["peak"].at(name_of(static_cast<Category>(c))).get<i64>();
    }
  }
  return m;
}

}  // namespace

std::array<i64, kCategories> peaks_of(const MemoryLedger& ledger) {
  std::array<i64, kCategories> peaks{};
  for (int c = 0; c < kCategories; ++c) {
    peaks[static_cast<std::size_t>(c)] = ledger.peak(static_cast<Category>(c));
  }
  return peaks;
}

struct MetricsWriter::Impl {
  std::string path;
  std::ofstream file;
};

MetricsWriter::MetricsWriter(const std::string& path, bool append) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  errno = 0;
  impl_->file.open(path, append ? std::ios::app : std::ios::trunc);
  require(impl_->file.is_open(),
          [&] { return fmt::format("{}: cannot be opened: {}.", path, std::strerror(errno)); });
}
MetricsWriter::~MetricsWriter() = default;
MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;

void MetricsWriter::write(const StepMetrics& metrics) {
  errno = 0;
  impl_->file << to_json(metrics).dump() << '\n' << std::flush;
  require(impl_->file.good(), [&] {
    return fmt::format("{}: step {} cannot be written: {}.", impl_->path, metrics.step, std::strerror(errno));
  });
}

std::vector<StepMetrics> read_metrics(const std::string& path) {
  std::ifstream file(path);
  require(file.is_open(),
          [&] { return fmt::format("{}: cannot be opened: {}.", path, std::strerror(errno)); });
  std::vector<StepMetrics> all;
  std::string line;
  for (i64 number = 1; std::getline(file, line); ++number) {
    const bool cut_short = file.eof();  // the last line has no end
    try {
      all.push_back(from_json(Json::parse(line)));
    } catch (const Json::exception&) {
      if (cut_short) break;
      fail(fmt::format("{}: line {} is not a line of metrics: \"{:.60}\".", path, number, line));
    }
  }
  return all;
}

}  // namespace shardlings::run
