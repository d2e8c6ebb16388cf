#include "data/corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/checksum.hpp"
#include "data/files.hpp"
#include "data/shuffle.hpp"

namespace shardlings::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhatToDo = "run ./lab setup to fetch the text again";

struct Recorded {
  std::uint32_t crc = 0;
  i64 bytes = 0;
};

/// The lines of the CHECKSUMS beside `folder` that speak of files in it, by file name. Empty without such a
/// file.
std::map<std::string, Recorded> recorded_checksums(const fs::path& folder) {
  std::map<std::string, Recorded> recorded;
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const fs::path here = whole.has_filename() ? whole : whole.parent_path();  // "sotu/" is "sotu"
  std::ifstream file(here.parent_path() / "CHECKSUMS");
  Recorded entry;
  std::string name;
  while (file >> entry.crc >> entry.bytes && std::getline(file >> std::ws, name)) {
    const fs::path path = name;
    if (path.parent_path() == here.filename() && path.extension() == ".txt")
      recorded[path.filename()] = entry;
  }
  return recorded;
}

void verify(const MappedFile& file, const Recorded& expected) {
  const std::uint32_t crc = posix_cksum(file.bytes());
  const auto bytes = static_cast<i64>(file.bytes().size());
  if (crc == expected.crc && bytes == expected.bytes) return;
  fail_usage(fmt::format("{} has changed: {} bytes with checksum {}, recorded were {} with {}; {}",
                         file.path(), bytes, crc, expected.bytes, expected.crc, kWhatToDo));
}

std::string text_of(const MappedFile& file) {
  std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (text.empty()) fail_usage(fmt::format("{} is empty (0 bytes); {}", file.path(), kWhatToDo));
  if (const auto at = text.find('\0'); at != std::string::npos) {
    fail_usage(
        fmt::format("{} is not text: byte {} of {} is zero; {}", file.path(), at, text.size(), kWhatToDo));
  }
  if (const auto at = first_invalid_utf8(text)) {
    fail_usage(fmt::format("{} is not UTF-8: byte {} of {} is 0x{:02x}; {}", file.path(), *at, text.size(),
                           static_cast<unsigned char>(text[*at]), kWhatToDo));
  }
  return text;
}

std::vector<std::string> cut_at_markers(const std::string& text) {
  std::vector<std::string> documents;
  std::string document, line;
  std::istringstream lines(text);
  const auto finish = [&] {
    if (document.find_first_not_of(" \n\r\t") != std::string::npos) documents.push_back(document);
    document.clear();
  };
  while (std::getline(lines, line)) {
    if (line == "<|endoftext|>") {
      finish();
    } else {
      document += line;
      if (!lines.eof()) document += '\n';
    }
  }
  finish();
  return documents;
}

Corpus load_folder(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().filename());
  }
  if (names.empty()) fail_usage(fmt::format("no *.txt documents in the folder {}; {}", path, kWhatToDo));
  std::sort(names.begin(), names.end());

  auto recorded = recorded_checksums(path);
  const std::size_t expected = recorded.size();
  Corpus corpus;
  for (const std::string& name : names) {
    const MappedFile file((fs::path(path) / name).string());
    if (expected > 0) {
      const auto found = recorded.find(name);
      if (found == recorded.end()) {
        fail_usage(fmt::format(
            "{} is not one of the {} documents recorded in CHECKSUMS: put your own text into another "
            "folder and name that",
            file.path(), expected));
      }
      verify(file, found->second);
      recorded.erase(found);
    }
    corpus.documents.push_back(text_of(file));
  }
  if (!recorded.empty()) {
    fail_usage(fmt::format("{} has {} of {} documents, {} is missing; {}", path, names.size(), expected,
                           recorded.begin()->first, kWhatToDo));
  }
  return corpus;
}

}  // namespace

i64 Corpus::bytes() const {
  i64 total = 0;
  for (const std::string& document : documents) total += static_cast<i64>(document.size());
  return total;
}

Corpus load_corpus(const std::string& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found)
    fail_usage(fmt::format("no text at {}; run ./lab setup", path));
  if (status.type() == fs::file_type::directory) return load_folder(path);
  Corpus corpus{cut_at_markers(text_of(MappedFile(path)))};
  if (corpus.documents.empty())
    fail_usage(fmt::format("{} has no text, only white space; {}", path, kWhatToDo));
  return corpus;
}

Split split(const Corpus& corpus, double fraction, std::uint64_t seed) {
  const auto n = static_cast<i64>(corpus.documents.size());
  if (!(fraction > 0 && fraction < 1))
    fail_usage(fmt::format("validation fraction {}: use one in (0, 1)", fraction));
  Split parts;
  if (n == 1) {
    const std::string& text = corpus.documents[0];
    const auto most = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - fraction));
    std::size_t cut = text.rfind('\n', most);
    if (cut == std::string::npos || cut < most / 2) cut = text.rfind(' ', most);  // no lines to speak of
    if (cut == std::string::npos || cut + 1 >= text.size()) {
      fail_usage(fmt::format("the text is too short to be split: 1 document of {} bytes", text.size()));
    }
    parts.train.documents = {text.substr(0, cut + 1)};
    parts.validation.documents = {text.substr(cut + 1)};
    return parts;
  }
  if (n < 1) fail_usage("the text has 0 documents: nothing to split");
  const i64 held_out = std::clamp<i64>(std::llround(fraction * static_cast<double>(n)), 1, n - 1);
  const std::uint64_t key = key_of({key_of("corpus split"), seed});
  for (i64 i = 0; i < n; ++i) {
    Corpus& part = shuffled(i, n, key) >= n - held_out ? parts.validation : parts.train;
    part.documents.push_back(corpus.documents[static_cast<std::size_t>(i)]);
  }
  return parts;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t i = 0;
  while (i < text.size()) {
    const unsigned lead = byte(i);
    const std::size_t length = lead < 0x80           ? 1
                               : (lead >> 5) == 0x6  ? 2
                               : (lead >> 4) == 0xe  ? 3
                               : (lead >> 3) == 0x1e ? 4
                                                     : 0;
    if (length == 0 || i + length > text.size()) return i;
    unsigned code = length == 1 ? lead : lead & (0x7fU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) >> 6) != 0x2) return i;
      code = (code << 6) | (byte(i + k) & 0x3fU);
    }
    constexpr unsigned kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // anything less was written too long
    if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return i;
    i += length;
  }
  return std::nullopt;
}

}  // namespace shardlings::data
