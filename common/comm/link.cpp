#include "comm/link.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

namespace shardlings {

namespace {

// Per-step latencies as NCCL's own cost model has them (src/graph/tuning.cc, hwLatencies, ring, simple
// protocol).
const std::array<Link, 6>& known_links() {
  static const std::array<Link, 6> links = {{
      {"none", 0, 0, "no link is simulated: as fast as memory allows"},
      {"nvlink4", 3.4e-6, 450e9, "18 NVLink 4 lanes of 25 GB/s per direction; latency of NCCL's cost model"},
      {"pcie4", 5.7e-6, 31.5e9, "16 lanes of 16 GT/s, 128b/130b coded; latency of NCCL's cost model"},
      {"ib-ndr", 14e-6, 50e9, "400 Gbit/s InfiniBand NDR; latency of NCCL's cost model"},
      {"eth10g", 25e-6, 1.25e9, "10 Gbit/s line rate; latency assumed for TCP inside a rack"},
      {"eth1g", 50e-6, 0.125e9, "1 Gbit/s line rate; latency assumed for TCP inside a rack"},
  }};
  return links;
}

bool read_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

Link link_from(std::string_view text) {
  std::string names;
  for (const Link& link : known_links()) {
    if (link.name == text) return link;
    names += link.name + ", ";
  }
  double alpha = 0, bandwidth = 0;
  const auto comma = text.find(',');
  if (comma == text.npos || !read_number(text.substr(0, comma), alpha) ||
      !read_number(text.substr(comma + 1), bandwidth) || alpha < 0 || bandwidth <= 0) {
    fail_usage(fmt::format("link '{}': choose {}or microseconds and GB/s, such as 50,0.125", text, names));
  }
  return {std::string(text), alpha * 1e-6, bandwidth * 1e9, "as asked for"};
}

std::string to_string(const Link& link) {
  if (link.none())
    return fmt::format("{} ({})", link.name, link.source.empty() ? known_links()[0].source : link.source);
  return fmt::format("{}: {:g} us + bytes / {:g} GB/s ({})", link.name, link.alpha * 1e6,
                     link.bandwidth / 1e9, link.source);
}

double transfer_seconds(const Link& link, std::string_view operation, int ranks, i64 bytes) {
  const int n = ranks;
  double messages = 0, sent = static_cast<double>(bytes);  // by one rank
  if (operation == "send") {
    messages = 1;
  } else if (operation == "broadcast") {
    messages = n - 1;
    if (n == 1) sent = 0;
  } else if (operation == "barrier" || operation == "split") {
    messages = std::bit_width(static_cast<unsigned>(n - 1));
    sent = 0;
  } else if (operation == "all_reduce") {
    messages = 2 * (n - 1);
    sent *= messages / n;
  } else if (operation == "reduce_scatter" || operation == "all_gather" || operation == "all_to_all") {
    messages = n - 1;
    sent *= messages / n;
  } else {
    fail(fmt::format("transfer_seconds: no operation '{}'", operation));
  }
  return messages * link.alpha + (link.bandwidth > 0 ? sent / link.bandwidth : 0);
}

}  // namespace shardlings
