#pragma once
// Files of named tensors in the safetensors format: a 64-bit header length, a JSON header (type, shape and
// place of each tensor, and a map of strings), then the raw little-endian values. Writing is atomic, reading
// maps the file.
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.hpp"
#include "data/files.hpp"

namespace shardlings::run {

/// A tensor's bytes somewhere in memory; owns nothing.
struct NamedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  const std::byte* data = nullptr;
};

using Metadata = std::map<std::string, std::string>;

/// Writes `path` whole or not at all: beside, fsync, read back and verified, rename, fsync of the folder. The
/// file that was there before is replaced only then; on any error (UsageError with path and bytes needed) it
/// is untouched. To `metadata` are added "format" = "pt", which readers of the Python world expect, and
/// "checksum": XXH64 of the header (with zeros in the place of the checksum's digits), which is the seed for
/// XXH64 of the first tensor's bytes, and so on in the order of the file. `before_replacing` is called when
/// the new file is durable and verified, just before it takes the old one's place.
void save_safetensors(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata,
                      const std::function<void()>& before_replacing = {});

/// A mapped file; what it hands out is valid as long as it lives. UsageError in one sentence with the file's
/// name and the numbers when it is unreadable, truncated, foreign, or not what its checksum says. Files of
/// other programs without a checksum are fine.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  const std::string& path() const { return file_.path(); }
  bool has(const std::string& name) const { return entries_.contains(name); }
  std::vector<std::string> names() const;
  /// UsageError when there is no such tensor, or its type is none of ours. `data` may be unaligned in foreign
  /// files.
  NamedTensor find(const std::string& name) const;
  const Metadata& metadata() const { return metadata_; }
  bool has_checksum() const { return has_checksum_; }  ///< then it was verified: the file is what we wrote

 private:
  struct Entry {
    std::string dtype;  // as the file calls it: "F32"
    Shape shape;
    std::size_t begin = 0, end = 0;  // in the data
  };
  void read_header(const std::string& json);
  void verify_places() const;
  void verify_checksum(std::string header);

  data::MappedFile file_;
  std::span<const std::byte> data_;
  std::map<std::string, Entry> entries_;
  Metadata metadata_;
  bool has_checksum_ = false;
};

}  // namespace shardlings::run
