#include "run/launch.hpp"

#include <fmt/format.h>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "comm/mpi/session.hpp"
#include "run/layout.hpp"

namespace shardlings::run {

using nlohmann::json;

RunOptions run_options(const CommonFlags& common) {
  RunOptions options;
  options.threads = common.threads;
  options.checked = common.checked;
  options.buffered_send = common.buffered_send;
  options.deadline = std::chrono::milliseconds(static_cast<i64>(common.deadline * 1e3));
  options.check_calls = common.check_comm;
  options.link = link_from(common.link);
  return options;
}

std::string head_text(const CommonFlags& common, const Rank& rank) {
  std::string text = layout_text(rank.size(), rank.threads(), rank.cores());
  const Link link = link_from(common.link);
  if (common.backend == "mpi") text += "\nranks are processes (MPI)";
  if (!link.none()) text += "\nlink " + to_string(link);
  return text;
}

namespace {

/// All processes of a job were given the same flags, or nobody starts.
void check_same_flags(MpiSession& session, const std::map<std::string, std::string>& mine) {
  const std::vector<std::string> all = session.gather(json(mine).dump());
  const auto first = json::parse(all[0]).get<std::map<std::string, std::string>>();
  for (std::size_t r = 1; r < all.size(); ++r) {
    const auto other = json::parse(all[r]).get<std::map<std::string, std::string>>();
    for (const auto& [name, value] : first) {
      const auto found = other.find(name);
      if (found == other.end())
        fail_usage(fmt::format("Rank {} has no flag --{}: it runs another program.", r, name));
      if (found->second != value)
        fail_usage(
            fmt::format("--{} differs between ranks: \"{}\" on rank 0, \"{}\" on rank {}; all need the same.",
                        name, value, found->second, r));
    }
    if (other.size() != first.size()) fail_usage(fmt::format("Rank {} runs another program than rank 0.", r));
  }
}

void launch_process(const CommonFlags& common, const std::function<void(Rank&)>& body) {
  MpiSession session;
  std::exception_ptr error;
  try {
    check_same_flags(session, common.chosen);
    if (common.ranks != session.size())
      fail_usage(fmt::format("{} ranks are planned, but {} processes run; add --ranks {}.", common.ranks,
                             session.size(), session.size()));
    session.run(body, run_options(common));
  } catch (...) {
    error = std::current_exception();
  }
  // Rank 0 speaks for all, before any process leaves: mpirun ends the others when one does.
  const int code = error && session.rank() == 0 ? say_failure(error) : 0;
  const int agreed = std::stoi(session.gather(std::to_string(code)).front());
  if (error) throw FailureShown{agreed == 0 ? 1 : agreed};
}

}  // namespace

void launch(const CommonFlags& common, const std::function<void(Rank&)>& body) {
  if (common.backend == "mpi") return launch_process(common, body);
  run_ranks(common.ranks, body, run_options(common));
}

std::vector<std::string> gather_texts(Rank& rank, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(rank.size());
  // Texts travel as 32-bit words: first how many bytes each has, then all of them.
  const auto words = [](i64 bytes) { return (bytes + 3) / 4; };
  const auto tensor = [&rank](i64 count) {
    return Tensor(rank.memory, Category::communication, DType::i32, {count});
  };
  const Tensor my_size = tensor(1), sizes = tensor(rank.size());
  my_size.data<std::int32_t>()[0] = static_cast<std::int32_t>(mine.size());
  rank.world().all_gather(my_size, sizes).wait();
  std::vector<i64> counts(ranks);
  i64 total = 0;
  for (std::size_t r = 0; r < ranks; ++r) total += counts[r] = words(sizes.data<std::int32_t>()[r]);

  const Tensor in = tensor(words(static_cast<i64>(mine.size()))), out = tensor(total);
  in.zero();
  if (!mine.empty()) std::memcpy(in.data<std::int32_t>(), mine.data(), mine.size());
  rank.world().all_gather(in, out, counts).wait();
  std::vector<std::string> all;
  if (rank.rank() != 0) return all;
  const std::int32_t* at = out.data<std::int32_t>();
  for (std::size_t r = 0; r < ranks; at += counts[r++]) {
    all.emplace_back(reinterpret_cast<const char*>(at),
                     static_cast<std::size_t>(sizes.data<std::int32_t>()[r]));
  }
  return all;
}

std::vector<double> gather_numbers(Rank& rank, double mine) {
  std::string bytes(sizeof mine, '\0');
  std::memcpy(bytes.data(), &mine, sizeof mine);
  std::vector<double> all;
  for (const std::string& text : gather_texts(rank, bytes)) {
    std::memcpy(&all.emplace_back(), text.data(), sizeof mine);
  }
  return all;
}

std::vector<RankRecord> gather_records(Rank& rank) {
  const RankRecord mine = record_of(rank);
  json events = json::array(), memory = json::array();
  for (const Event& e : mine.events) {
    events.push_back({static_cast<int>(e.kind), e.what, e.begin, e.end, static_cast<int>(e.lane)});
  }
  for (const MemorySample& m : mine.memory) memory.push_back({m.at, m.bytes});
  const json packed = {mine.rank, events, memory, mine.peak, mine.total_peak, mine.bytes_sent};
  const std::vector<std::uint8_t> bytes = json::to_cbor(packed);
  std::vector<RankRecord> all;
  for (const std::string& text : gather_texts(rank, std::string(bytes.begin(), bytes.end()))) {
    const json r = json::from_cbor(text.begin(), text.end());
    RankRecord& record = all.emplace_back();
    record.rank = r[0];
    for (const json& e : r[1]) {
      record.events.push_back({static_cast<Event::Kind>(e[0].get<int>()), e[1].get<std::string>(),
                               e[2].get<std::int64_t>(), e[3].get<std::int64_t>(),
                               static_cast<Event::Lane>(e[4].get<int>())});
    }
    for (const json& m : r[2]) {
      record.memory.push_back({m[0].get<std::int64_t>(), m[1].get<std::array<i64, kCategories>>()});
    }
    record.peak = r[3].get<std::array<i64, kCategories>>();
    record.total_peak = r[4];
    record.bytes_sent = r[5].get<std::map<std::string, i64>>();
  }
  return all;
}

}  // namespace shardlings::run
