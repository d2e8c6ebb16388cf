#include "comm/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace shardlings::comm_detail {

namespace {

const char* verb(const std::vector<int>& ranks, const char* one, const char* many) {
  return ranks.size() == 1 ? one : many;
}

bool has(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::string doing(const RankState& s) {
  switch (s.state) {
    case RankState::returned:
      return "returned";
    case RankState::failed:
      return "failed";
    case RankState::silent:
      return "does not answer";
    case RankState::running:
      break;
  }
  if (s.call.empty()) return "computes";
  return (s.waits ? "waits in " : "calls ") + s.call;
}

std::string milliseconds(std::int64_t ns) {
  const double ms = static_cast<double>(ns) * 1e-6;
  return ms < 10 ? fmt::format("{:.2f} ms", ms) : std::to_string(std::lround(ms)) + " ms";
}

const RankState& at(const std::vector<RankState>& ranks, int rank) {
  return ranks[static_cast<std::size_t>(rank)];
}

std::string explain_cycle(const std::vector<RankState>& ranks, std::vector<int>& odd) {
  std::vector<int> waited_for(ranks.size(), 0), path;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r].waits) continue;
    if (path.empty()) path.push_back(static_cast<int>(r));
    for (const int m : ranks[r].missing) ++waited_for[static_cast<std::size_t>(m)];
  }
  if (path.empty()) return "no rank waits any more";
  const auto most = std::max_element(waited_for.begin(), waited_for.end());
  if (*most > 1 && std::count(waited_for.begin(), waited_for.end(), *most) == 1) {
    odd = {static_cast<int>(most - waited_for.begin())};
  }
  // From the first waiting rank along "waits for", until a rank comes again.
  std::string text = "the ranks wait for each other: ";
  for (;;) {
    const RankState& s = at(ranks, path.back());
    if (s.missing.empty()) return text + doing(s);
    const int next = s.missing[0];
    const bool again = has(path, next);
    text += fmt::format("rank {} in {} for rank {}{}", path.back(), s.call, next, again ? "" : ", ");
    if (again) break;
    path.push_back(next);
  }
  if (std::all_of(path.begin(), path.end(), [&](int r) { return at(ranks, r).sends; }))
    text += ". Here a send ends when it is received: post the receive before waiting for the send";
  return text;
}

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string explain_waiting(const std::vector<RankState>& ranks, std::vector<int>& odd) {
  for (const RankState& s : ranks) {
    if (!s.waits) continue;
    std::vector<int> absent, gone;
    for (const int r : s.missing) {
      if (!at(ranks, r).waits) absent.push_back(r);
      if (at(ranks, r).state == RankState::returned) gone.push_back(r);
    }
    if (absent.empty()) continue;
    std::vector<int> together;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (ranks[r].waits && ranks[r].exchange == s.exchange) together.push_back(static_cast<int>(r));
    }
    odd = gone.empty() ? absent : gone;  // who has returned will never come; the others still may
    return fmt::format(
        "{} {} in {}; {} {}", ranks_text(together), verb(together, "waits", "wait"), s.call, ranks_text(odd),
        gone.empty() ? verb(odd, "has not called it", "have not called it") : "returned without calling it");
  }
  return explain_cycle(ranks, odd);
}

std::string table_text(const std::vector<RankState>& ranks, const std::vector<int>& odd) {
  struct Row {
    std::string rank, doing, since, last;
  };
  std::vector<Row> rows = {{"rank", "doing", "since", "last completed"}};
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankState& s = ranks[r];
    rows.push_back({fmt::format("{}{}", has(odd, static_cast<int>(r)) ? "> " : "", r), doing(s),
                    milliseconds(s.for_ns), s.last});
  }
  std::size_t a = 0, b = 0, c = 0;
  for (const Row& row : rows) {
    a = std::max(a, row.rank.size());
    b = std::max(b, row.doing.size());
    c = std::max(c, row.since.size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += "  " + std::string(a - row.rank.size(), ' ') + row.rank + " | " + row.doing +
            std::string(b - row.doing.size(), ' ') + " | " + std::string(c - row.since.size(), ' ') +
            row.since + " | " + row.last + "\n";
  }
  text.pop_back();
  return text;
}

std::string mismatch_text(const std::vector<const Call*>& calls, const std::vector<int>& members,
                          std::vector<int>& odd) {
  const Call& first = *calls[0];
  if (std::all_of(calls.begin(), calls.end(), [&](const Call* c) { return fits(*c, first); })) return {};
  std::map<std::string, std::vector<int>> camps;  // who calls what
  for (std::size_t i = 0; i < calls.size(); ++i) camps[signature(*calls[i])].push_back(members[i]);
  std::vector<std::pair<std::string, std::vector<int>>> sorted(camps.begin(), camps.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() < b.second.size() : a.second < b.second;
  });
  std::string text;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [what, ranks] = sorted[i];
    text +=
        fmt::format("{}{} {} {}", i > 0 ? ", " : "", ranks_text(ranks), verb(ranks, "calls", "call"), what);
    const bool majority = i + 1 == sorted.size() && 2 * ranks.size() > calls.size();
    if (!majority) odd.insert(odd.end(), ranks.begin(), ranks.end());
  }
  if (odd.size() == calls.size()) odd.clear();
  return fmt::format("mismatch on {} #{}: {}", first.group->name, first.sequence, text);
}

std::string mismatch_text(const Call& send, int sender, const Call& recv, int receiver) {
  if (send.in.count == recv.out.count && send.in.dtype == recv.out.dtype && send.tag == recv.tag) return {};
  return fmt::format("mismatch on {}: rank {} calls {}, rank {} calls {}", recv.group->name, sender,
                     signature(send), receiver, signature(recv));
}

}  // namespace shardlings::comm_detail
