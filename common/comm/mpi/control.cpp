// How a run fails, and how it ends. The first complaint that reaches rank 0 is the failure; rank 0 asks all
// ranks what they are doing, writes the report and sends it to everybody. When all bodies are over, all leave
// together.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "comm/mpi/wire.hpp"
#include "comm/mpi/world.hpp"

namespace shardlings::comm_detail {

namespace {

// How long rank 0 waits for the others to say what they are doing: their communication threads answer at
// once.
constexpr std::int64_t kAnswerNs = 1'000'000'000;
// How much longer a rank waits for rank 0.
constexpr std::int64_t kPatienceNs = 2'000'000'000;
// After a failure every body must end soon; at most this long, and not longer than the deadline.
constexpr std::int64_t kGraceNs = 5'000'000'000;

bool all(const std::vector<bool>& ranks) {
  return std::find(ranks.begin(), ranks.end(), false) == ranks.end();
}

void pack(Packer& to, const Complaint& c) {
  to.put(c.cause).put(c.odd).put(c.explain).put(c.culprit).put(c.code).put(c.sentence);
}

Complaint unpack_complaint(Unpacker& from) {
  Complaint c;
  c.cause = from.get<std::string>();
  c.odd = from.list<int>();
  c.explain = from.get<bool>();
  c.culprit = from.get<int>();
  c.code = from.get<int>();
  c.sentence = from.get<std::string>();
  return c;
}

/// A rank's own exception as a complaint; none if it only passes on the failure of the run.
std::optional<Complaint> complaint_of(int rank, const std::exception_ptr& error) {
  Complaint c;
  c.culprit = rank;
  c.odd = {rank};
  try {
    std::rethrow_exception(error);
  } catch (const RunFailed&) {
    return std::nullopt;
  } catch (const UsageError& e) {
    c.code = 2;
    c.sentence = e.what();
  } catch (const Todo& e) {
    c.code = 3;
    c.sentence = e.what();
  } catch (const std::exception& e) {
    c.sentence = e.what();
  } catch (...) {
    c.sentence = "an exception that is not a std::exception";
  }
  c.cause = fmt::format("rank {} failed: {}", rank, c.sentence);
  return c;
}

}  // namespace

void ProcessWorld::tell(int to, const std::string& note) {
  if (to == me_) {
    own_notes_.push_back({me_, note});
  } else {
    port_.tell(to, note);
  }
}

void ProcessWorld::tell_all(const std::string& note) {
  for (int r = 0; r < ranks_; ++r) tell(r, note);
}

RankState ProcessWorld::state_now() const {
  RankState s;
  s.state = state_;
  s.for_ns = now_ns() - since_;
  if (any_completed_) s.last = describe(last_);
  if (state_ != RankState::running) return s;
  if (inside_ != nullptr && !inside_->done) {
    s.waits = true;
    s.call = describe(inside_->call);
    s.sends = inside_->call.kind == Kind::send;
    s.exchange = inside_->exchange;
    s.missing = missing(*inside_);
  } else {
    s.call = refused_;
  }
  return s;
}

// ---------------------------------------------------------------- failing

void ProcessWorld::complain(const Complaint& complaint) {
  if (failed_ || complained_at_ != 0) return;
  complained_at_ = now_ns();
  cause_ = complaint.cause;  // until rank 0 has said what the failure is
  if (me_ == 0) return judge(complaint);
  Packer note;
  note.put<int>(kComplaint);
  pack(note, complaint);
  tell(0, note.take());
}

void ProcessWorld::judge(const Complaint& complaint) {
  if (case_ || failed_) return;
  case_ = complaint;
  asked_at_ = now_ns();
  tell_all(Packer().put<int>(kAsk).take());
}

void ProcessWorld::decide() {
  if (decided_) return;
  decided_ = true;
  std::vector<RankState> states;
  states.reserve(states_.size());
  for (const auto& known : states_) {
    if (known) {
      states.push_back(*known);
    } else {
      states.emplace_back().state = RankState::silent;
      states.back().for_ns = now_ns() - asked_at_;
    }
  }
  std::vector<int> odd = case_->odd;
  std::string cause = case_->cause;
  if (case_->explain) cause += explain_waiting(states, odd);
  Packer note;
  note.put<int>(kFailed).put(cause).put(table_text(states, odd)).put(case_->culprit).put(case_->code);
  note.put(case_->sentence);
  tell_all(note.take());
}

void ProcessWorld::fail_run(Unpacker& in) {
  if (failed_) return;
  cause_ = in.get<std::string>();
  table_ = in.get<std::string>();
  culprit_ = in.get<int>();
  code_ = in.get<int>();
  sentence_ = in.get<std::string>();
  failed_ = true;
  failed_at_ = now_ns();
  closed_ = true;
  tell_all(Packer().put<int>(kFlush).take());
}

bool ProcessWorld::handle_control(int from, int kind, Unpacker& in) {
  const auto sender = static_cast<std::size_t>(from);
  switch (kind) {
    case kReturned:
      returned_[sender] = true;
      return true;
    case kComplaint:
      judge(unpack_complaint(in));
      return true;
    case kAsk: {
      Packer note;
      note.put<int>(kState);
      pack(note, state_now());
      tell(from, note.take());
      return true;
    }
    case kState:
      if (failed_) return true;
      states_[sender] = unpack_state(in);
      if (std::all_of(states_.begin(), states_.end(), [](const auto& s) { return s.has_value(); })) decide();
      return true;
    case kFailed:
      fail_run(in);
      return true;
    case kFlush:
      flushed_[sender] = true;
      return true;
    case kClosed:
      closed_ranks_[sender] = true;
      return true;
    case kOver: {
      over_ranks_[sender] = true;
      const Complaint own = unpack_complaint(in);
      if (own.culprit < 0 || own.culprit != culprit_) return true;
      cause_ = own.cause;  // in case the failure was known before the exception
      code_ = own.code;
      sentence_ = own.sentence;
      return true;
    }
    case kEnd:
      cause_ = in.get<std::string>();
      code_ = in.get<int>();
      sentence_ = in.get<std::string>();
      ended_ = true;
      return true;
    default:
      return false;
  }
}

// What must not wait for ever when a process does not answer, or its body does not end.
void ProcessWorld::look_at_clock() {
  const std::int64_t now = now_ns();
  const std::int64_t patience = me_ == 0 ? 0 : kPatienceNs;
  if (failed_) {
    const std::int64_t grace =
        std::min<std::int64_t>(kGraceNs, std::chrono::nanoseconds(options_.deadline).count());
    if (!ended_ && now - failed_at_ > grace + patience) last_words();
    return;
  }
  if (case_ && now - asked_at_ > kAnswerNs) return decide();
  if (me_ == 0 || complained_at_ == 0 || now - complained_at_ < kAnswerNs + patience) return;
  std::vector<RankState> states(static_cast<std::size_t>(ranks_));
  for (RankState& s : states) {
    s.state = RankState::silent;
    s.for_ns = now - complained_at_;
  }
  states[static_cast<std::size_t>(me_)] = state_now();
  cause_ += "rank 0, which writes the report, does not answer";
  table_ = table_text(states, {0});
  last_words();
}

// The body of some rank does not end: rank 0 (or, if it is rank 0, another) says what happened and ends the
// job.
void ProcessWorld::last_words() {
  const bool enough = code_ == 2 || code_ == 3;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", enough ? sentence_.c_str() : report().c_str());
  std::fflush(stderr);
  port_.abort(code_ == 0 ? 1 : code_);
}

// ---------------------------------------------------------------- ending

// What a rank whose body is over does next. `own`: its own exception.
void ProcessWorld::step_to_end(const std::optional<Complaint>& own) {
  if (!failed_ && !told_closed_ && complained_at_ == 0 && all(returned_)) {
    const std::string text = unreceived();
    if (!text.empty()) return complain({text, {me_}});
    told_closed_ = true;
    tell(0, Packer().put<int>(kClosed).take());
  }
  if (failed_ && !told_over_) {
    told_over_ = true;
    Packer note;
    note.put<int>(kOver);
    pack(note, own.value_or(Complaint()));
    tell(0, note.take());
  }
  if (me_ != 0 || told_end_ || !all(failed_ ? over_ranks_ : closed_ranks_)) return;
  told_end_ = true;
  tell_all(Packer().put<int>(kEnd).put(cause_).put(code_).put(sentence_).take());
}

void ProcessWorld::finish(const std::exception_ptr& error) {
  const std::optional<Complaint> own = error ? complaint_of(me_, error) : std::nullopt;
  {
    Lock lock(mutex_);
    state_ = error ? RankState::failed : RankState::returned;
    since_ = now_ns();
    if (own) complain(*own);
    if (!error) tell_all(Packer().put<int>(kReturned).take());
    driven_ = true;
    Pause idle(false);
    while (!ended_ || !all(failed_ ? flushed_ : returned_)) {
      if (progress(lock)) {
        idle.progressed();
      } else {
        idle.pause(lock);
      }
      step_to_end(own);
    }
  }
  port_
      .barrier();  // nobody starts the next run while others are in this one; the communication thread sleeps
  if (!failed_) return;
  if (own && culprit_ == me_) std::rethrow_exception(error);
  if (code_ == 2) fail_usage(sentence_);
  if (code_ == 3) throw Todo(sentence_);
  fail(report());
}

}  // namespace shardlings::comm_detail
