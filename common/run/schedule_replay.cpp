#include "run/schedule_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace shardlings::run {

namespace {

/// Something a rank did in a step, `computed` ns of computing after what it did before.
struct Action {
  Event::Kind kind;  // post, done; other: the end of the step
  std::string what;
  double computed = 0;
};

struct RankStep {
  std::int64_t begin = 0, end = 0;
  std::vector<Action> actions;
  std::map<std::string, double> transfers;  // ns under way
  double computing() const {
    double sum = 0;
    for (const Action& action : actions) sum += action.computed;
    return sum;
  }
};

std::vector<RankStep> steps_of(const std::vector<Event>& events) {
  std::vector<RankStep> steps;
  for (const Event& event : events) {
    if (is_step(event)) steps.push_back({event.begin, event.end, {}, {}});
  }
  // Events come in program order, so each step's are one run of them; waits and transfers come when they end.
  auto step = steps.begin();
  std::int64_t at = 0, waited = 0;
  const auto act = [&](Event::Kind kind, const std::string& what, std::int64_t now) {
    step->actions.push_back({kind, what, static_cast<double>(now - at - waited)});
    at = now;
    waited = 0;
  };
  bool inside = false;
  const auto leave = [&] {
    if (!inside) return;
    act(Event::other, "", step->end);
    ++step;
    inside = false;
  };
  for (const Event& event : events) {
    if (inside && event.lane == Event::compute && event.begin > step->end) leave();
    if (is_step(event)) {
      leave();
      inside = true;
      at = event.begin;
      waited = 0;
    }
    if (!inside) continue;
    if (event.lane == Event::communication) {
      step->transfers[event.what] = static_cast<double>(event.end - event.begin);
    } else if (event.kind == Event::wait) {
      waited += event.end - event.begin;
    } else if (event.kind == Event::post || event.kind == Event::done) {
      act(event.kind, event.what, event.begin);
    }
  }
  leave();
  return steps;
}

/// A transfer among all ranks.
struct Transfer {
  std::size_t posted = 0;
  double ready = 0, end = -1;
};

/// The ranks' steps side by side: each goes on until it must wait for what is not known yet.
double ideal_ns(const std::vector<RankStep>& ranks, std::int64_t zero) {
  std::vector<double> clocks;
  clocks.reserve(ranks.size());
  for (const RankStep& rank : ranks) clocks.push_back(static_cast<double>(rank.begin - zero));
  std::vector<std::size_t> next(ranks.size(), 0);
  std::map<std::string, Transfer> transfers;
  double link_free = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      for (; next[r] < ranks[r].actions.size(); ++next[r], moved = true) {
        const Action& action = ranks[r].actions[next[r]];
        Transfer* transfer = action.kind == Event::other ? nullptr : &transfers[action.what];
        if (action.kind == Event::done && transfer->end < 0) break;
        clocks[r] += action.computed;
        if (action.kind == Event::done) clocks[r] = std::max(clocks[r], transfer->end);
        if (action.kind != Event::post) continue;
        transfer->ready = std::max(transfer->ready, clocks[r]);
        if (++transfer->posted < ranks.size()) continue;
        const auto took = ranks[r].transfers.find(action.what);
        transfer->end = std::max(transfer->ready, link_free);
        if (took != ranks[r].transfers.end()) link_free = transfer->end += took->second;
      }
    }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    require(next[r] == ranks[r].actions.size(), [&] {
      return fmt::format("replay: rank {} waits for {}, which not every rank posted in this step", r,
                         ranks[r].actions[next[r]].what);
    });
  }
  return *std::max_element(clocks.begin(), clocks.end());
}

}  // namespace

std::vector<StepSchedule> replay_steps(const std::vector<RankRecord>& ranks) {
  std::vector<std::vector<RankStep>> all;
  std::size_t count = 0;
  for (const RankRecord& rank : ranks) {
    all.push_back(steps_of(rank.events));
    count = all.size() == 1 ? all.back().size() : std::min(count, all.back().size());
  }
  std::vector<StepSchedule> schedules;
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<RankStep> step;
    step.reserve(all.size());
    for (std::vector<RankStep>& rank : all) step.push_back(std::move(rank[k]));
    std::int64_t begin = step.front().begin, end = step.front().end;
    double slowest = 0, under_way = 0;
    for (const RankStep& rank : step) {
      begin = std::min(begin, rank.begin);
      end = std::max(end, rank.end);
      slowest = std::max(slowest, rank.computing());
    }
    for (const auto& [what, ns] : step.front().transfers) under_way += ns;
    schedules.push_back({static_cast<double>(end - begin) * 1e-6, ideal_ns(step, begin) * 1e-6,
                         (slowest + under_way) * 1e-6});
  }
  return schedules;
}

double median_of(const std::vector<StepSchedule>& steps, double StepSchedule::*member) {
  if (steps.empty()) return 0;
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepSchedule& step : steps) values.push_back(step.*member);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace shardlings::run
