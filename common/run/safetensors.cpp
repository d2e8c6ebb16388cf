#include "run/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "data/checksum.hpp"

namespace shardlings::run {
namespace {

using data::xxh64;
using Json = nlohmann::json;

constexpr std::size_t kLargestHeader = 100'000'000;  // as the reference implementation has it
constexpr std::string_view kChecksumPrefix = "xxh64:";
constexpr std::size_t kDigits = 16;

const char* format_name(DType t) {
  switch (t) {
    case DType::f32:
      return "F32";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    case DType::f64:
      return "F64";
    case DType::i32:
      return "I32";
  }
  return "?";
}

/// Bytes of one element of any type the format knows; 0 for an unknown one.
std::size_t format_size(const std::string& name) {
  static const std::map<std::string, std::size_t> kSizes{
      {"F64", 8},  {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4},     {"U32", 4},     {"F16", 2}, {"I16", 2},
      {"BF16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};
  const auto found = kSizes.find(name);
  return found == kSizes.end() ? 0 : found->second;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::size_t bytes_of(const NamedTensor& t) {
  return static_cast<std::size_t>(numel_of(t.shape) * size_of(t.dtype));
}

/// The header with "checksum" zeroed. Its size is a multiple of 8, so that the data is aligned.
std::string header_for(const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  Json header = Json::object();
  std::size_t at = 0;
  for (const NamedTensor& t : tensors) {
    require(!header.contains(t.name),
            [&] { return fmt::format("two tensors named {} in one file", t.name); });
    header[t.name] = {
        {"dtype", format_name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {at, at + bytes_of(t)}}};
    at += bytes_of(t);
  }
  Json& strings = header["__metadata__"] = metadata;
  strings["format"] = "pt";
  strings["checksum"] = std::string(kChecksumPrefix) + std::string(kDigits, '0');
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

/// Where the digits of the checksum are in a header, given its value; npos if it is not written there as
/// such.
std::size_t digits_in(const std::string& header, const std::string& value) {
  const std::size_t at = header.find("\"" + value + "\"");
  return at == std::string::npos ? at : at + 1 + kChecksumPrefix.size();
}

}  // namespace

void save_safetensors(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata,
                      const std::function<void()>& before_replacing) {
  // Wide types first, as the reference implementation sorts them: every tensor is then aligned without gaps.
  std::vector<NamedTensor> sorted(tensors.begin(), tensors.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const NamedTensor& a, const NamedTensor& b) {
    return size_of(a.dtype) > size_of(b.dtype);
  });
  std::string header = header_for(sorted, metadata);

  std::uint64_t checksum = xxh64(bytes_of(header));
  std::size_t total = 8 + header.size();
  for (const NamedTensor& t : sorted) {
    checksum = xxh64({t.data, bytes_of(t)}, checksum);
    total += bytes_of(t);
  }
  const std::size_t digits = digits_in(header, std::string(kChecksumPrefix) + std::string(kDigits, '0'));
  header.replace(digits, kDigits, fmt::format("{:016x}", checksum));

  data::AtomicFile file(path, static_cast<i64>(total));
  const std::uint64_t length = header.size();
  file.write(&length, sizeof length);
  file.write(header.data(), header.size());
  for (const NamedTensor& t : sorted) file.write(t.data, bytes_of(t));
  file.sync();
  const SafetensorsFile verified(file.temporary());
  if (before_replacing) before_replacing();
  file.commit();
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  const auto bytes = file_.bytes();
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) {
    fail_usage(
        fmt::format("{} is not a safetensors file: it has {} bytes, the length of the header alone has 8",
                    path, bytes.size()));
  }
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kLargestHeader || bytes.size() < 9 || std::to_integer<char>(bytes[8]) != '{') {
    fail_usage(fmt::format(
        "{} is not a safetensors file: its first 8 bytes would be a header length of {}, and no header "
        "follows",
        path, length));
  }
  if (length > bytes.size() - sizeof length) {
    fail_usage(fmt::format("{} is truncated: the header alone has {} bytes, the file {}", path, length,
                           bytes.size()));
  }
  const std::string header(reinterpret_cast<const char*>(bytes.data()) + sizeof length, length);
  data_ = bytes.subspan(sizeof length + length);
  read_header(header);
  verify_places();
  verify_checksum(header);
}

void SafetensorsFile::read_header(const std::string& json) {
  try {
    const Json header = Json::parse(json);
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") {
        metadata_ = value.get<Metadata>();
        continue;
      }
      const auto offsets = value.at("data_offsets").get<std::array<std::size_t, 2>>();
      entries_[name] = {value.at("dtype").get<std::string>(), value.at("shape").get<Shape>(), offsets[0],
                        offsets[1]};
    }
  } catch (const Json::exception& error) {
    fail_usage(fmt::format("{} is damaged or foreign: its header of {} bytes cannot be understood ({})",
                           path(), json.size(), error.what()));
  }
}

void SafetensorsFile::verify_places() const {
  std::vector<std::pair<std::size_t, std::string>> order;
  std::size_t end = 0;
  for (const auto& [name, entry] : entries_) {
    order.emplace_back(entry.begin, name);
    end = std::max(end, entry.end);
  }
  if (end != data_.size()) {
    const std::size_t header = file_.bytes().size() - data_.size();
    fail_usage(
        fmt::format("{} is truncated or damaged: its header describes a file of {} bytes, and it has {}",
                    path(), header + end, header + data_.size()));
  }
  std::sort(order.begin(), order.end(),
            [this](const auto& a, const auto& b) {  // empty tensors before what begins there
              return std::pair(a.first, entries_.at(a.second).end) <
                     std::pair(b.first, entries_.at(b.second).end);
            });
  std::size_t at = 0;
  for (const auto& [begin, name] : order) {
    const Entry& entry = entries_.at(name);
    std::size_t bytes = format_size(entry.dtype);
    if (bytes == 0) fail_usage(fmt::format("{}: {} has the unknown type {}", path(), name, entry.dtype));
    bool sensible = true;
    for (i64 d : entry.shape) {
      sensible = sensible && d >= 0 && !__builtin_mul_overflow(bytes, static_cast<std::size_t>(d), &bytes);
    }
    if (!sensible || entry.begin != at || entry.end < entry.begin || entry.end - entry.begin != bytes) {
      fail_usage(
          fmt::format("{} is damaged: {} {} {} lies at bytes {} to {} of the data, and should begin at {}",
                      path(), name, entry.dtype, to_string(entry.shape), entry.begin, entry.end, at));
    }
    at = entry.end;
  }
}

void SafetensorsFile::verify_checksum(std::string header) {
  const auto found = metadata_.find("checksum");
  if (found == metadata_.end() || !found->second.starts_with(kChecksumPrefix)) return;
  const std::size_t digits = digits_in(header, found->second);
  if (digits != std::string::npos && found->second.size() == kChecksumPrefix.size() + kDigits) {
    header.replace(digits, kDigits, kDigits, '0');
  }
  std::uint64_t checksum = xxh64(bytes_of(header));
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (const auto& [name, entry] : entries_) places.emplace_back(entry.begin, entry.end);
  std::sort(places.begin(), places.end());
  for (const auto& [begin, end] : places) checksum = xxh64(data_.subspan(begin, end - begin), checksum);
  const std::string actual = fmt::format("{}{:016x}", kChecksumPrefix, checksum);
  if (actual != found->second) {
    fail_usage(fmt::format("{} is damaged: its {} bytes have the checksum {}, written with it was {}", path(),
                           file_.bytes().size(), actual, found->second));
  }
  has_checksum_ = true;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

NamedTensor SafetensorsFile::find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    fail_usage(fmt::format("{} has no tensor {} among its {}", path(), name, entries_.size()));
  const Entry& entry = found->second;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32}) {
    if (entry.dtype == format_name(t)) return {name, t, entry.shape, data_.data() + entry.begin};
  }
  fail_usage(
      fmt::format("{}: {} has the type {}, which this program does not use", path(), name, entry.dtype));
}

}  // namespace shardlings::run
