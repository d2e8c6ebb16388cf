#include "comm/mpi/port.hpp"

#include "core/error.hpp"

#ifndef SHARDLINGS_MPI
// A build without MPI: launch refuses before it comes here.
namespace shardlings::comm_detail {
struct Port::Requests {};
Port::Port() { fail("this build has no MPI"); }
Port::~Port() = default;
void Port::tell(int, std::string) {}
std::optional<Note> Port::hear() { return std::nullopt; }
std::shared_ptr<Transfer> Port::send(const std::byte*, i64, int, int) { return nullptr; }
std::shared_ptr<Transfer> Port::receive(std::byte*, i64, int, int) { return nullptr; }
bool Port::progress() { return false; }
std::vector<std::string> Port::gather(const std::string&) { return {}; }
void Port::barrier() {}
void Port::abort(int) { fail("this build has no MPI"); }
}  // namespace shardlings::comm_detail
#else

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

namespace shardlings::comm_detail {

namespace {

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  fail(fmt::format("MPI failed in {}: {}", what, text));
}

}  // namespace

struct Port::Requests {
  MPI_Comm notes = MPI_COMM_NULL, data = MPI_COMM_NULL;
  struct Sent {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  std::deque<Sent> told;  // notes on their way: a deque does not move what it holds
  std::vector<MPI_Request> moving;
  std::vector<std::shared_ptr<Transfer> > transfers;  // of moving, one each
  std::vector<int> ended;                             // scratch of progress()
};

Port::Port() : requests_(std::make_unique<Requests>()) {
  int provided = 0;
  // The rank's thread and its communication thread take turns.
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  require(provided >= MPI_THREAD_SERIALIZED, "this MPI library does not let two threads take turns");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check(MPI_Comm_dup(MPI_COMM_WORLD, &requests_->notes), "MPI_Comm_dup");
  check(MPI_Comm_dup(MPI_COMM_WORLD, &requests_->data), "MPI_Comm_dup");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  void* most = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&most), &known);
  tags_ = known != 0 ? std::min(*static_cast<int*>(most), 1 << 24) : 32767;
}

Port::~Port() {
  MPI_Comm_free(&requests_->notes);
  MPI_Comm_free(&requests_->data);
  MPI_Finalize();
}

void Port::tell(int to, std::string note) {
  auto& sent = requests_->told.emplace_back();
  sent.text = std::move(note);
  check(MPI_Isend(sent.text.data(), static_cast<int>(sent.text.size()), MPI_BYTE, to, 0, requests_->notes,
                  &sent.request),
        "MPI_Isend");
}

std::optional<Note> Port::hear() {
  int any = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  check(MPI_Improbe(MPI_ANY_SOURCE, 0, requests_->notes, &any, &message, &status), "MPI_Improbe");
  if (any == 0) return std::nullopt;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  Note note{status.MPI_SOURCE, std::string(static_cast<std::size_t>(bytes), '\0')};
  check(MPI_Mrecv(note.text.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
  return note;
}

std::shared_ptr<Transfer> Port::send(const std::byte* from, i64 bytes, int to, int tag) {
  auto transfer = std::make_shared<Transfer>();
  for (i64 at = 0; at < bytes; at += piece_bytes) {
    const int count = static_cast<int>(std::min(piece_bytes, bytes - at));
    ++transfer->pieces_left;
    requests_->transfers.push_back(transfer);
    check(MPI_Isend(from + at, count, MPI_BYTE, to, tag, requests_->data,
                    &requests_->moving.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Isend");
  }
  return transfer;
}

std::shared_ptr<Transfer> Port::receive(std::byte* to, i64 bytes, int from, int tag) {
  auto transfer = std::make_shared<Transfer>();
  for (i64 at = 0; at < bytes; at += piece_bytes) {
    const int count = static_cast<int>(std::min(piece_bytes, bytes - at));
    ++transfer->pieces_left;
    requests_->transfers.push_back(transfer);
    check(MPI_Irecv(to + at, count, MPI_BYTE, from, tag, requests_->data,
                    &requests_->moving.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Irecv");
  }
  return transfer;
}

bool Port::progress() {
  auto& told = requests_->told;
  int gone = 1;
  while (!told.empty() && gone != 0) {
    check(MPI_Test(&told.front().request, &gone, MPI_STATUS_IGNORE), "MPI_Test");
    if (gone != 0) told.pop_front();
  }
  auto& moving = requests_->moving;
  if (moving.empty()) return false;
  requests_->ended.resize(moving.size());
  int count = 0;
  check(MPI_Testsome(static_cast<int>(moving.size()), moving.data(), &count, requests_->ended.data(),
                     MPI_STATUSES_IGNORE),
        "MPI_Testsome");
  if (count <= 0) return false;
  for (int i = 0; i < count; ++i)
    --requests_->transfers[static_cast<std::size_t>(requests_->ended[static_cast<std::size_t>(i)])]
          ->pieces_left;
  std::size_t kept = 0;  // what ended has left a null request behind
  for (std::size_t i = 0; i < moving.size(); ++i) {
    if (moving[i] == MPI_REQUEST_NULL) continue;
    if (kept != i) {
      moving[kept] = moving[i];
      requests_->transfers[kept] = std::move(requests_->transfers[i]);
    }
    ++kept;
  }
  moving.resize(kept);
  requests_->transfers.resize(kept);
  return true;
}

std::vector<std::string> Port::gather(const std::string& mine) {
  const auto n = static_cast<std::size_t>(size_);
  std::vector<int> counts(n), begins(n);
  const int count = static_cast<int>(mine.size());
  check(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, requests_->notes), "MPI_Allgather");
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  std::string all(static_cast<std::size_t>(begins.back() + counts.back()), '\0');
  check(MPI_Allgatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), begins.data(), MPI_BYTE,
                       requests_->notes),
        "MPI_Allgatherv");
  std::vector<std::string> texts;
  texts.reserve(n);
  for (std::size_t r = 0; r < n; ++r)
    texts.push_back(all.substr(static_cast<std::size_t>(begins[r]), static_cast<std::size_t>(counts[r])));
  return texts;
}

void Port::barrier() { check(MPI_Barrier(requests_->notes), "MPI_Barrier"); }

void Port::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();  // MPI_Abort does not come back
}

}  // namespace shardlings::comm_detail
#endif
