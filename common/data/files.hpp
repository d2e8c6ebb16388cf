#pragma once
// Files that are read by mapping them, and files that appear whole or not at all.
#include <cstddef>
#include <span>
#include <string>

#include "core/dtype.hpp"

namespace shardlings::data {

/// A file's bytes, mapped read-only for as long as the object lives. UsageError when it cannot be read, or is
/// a folder. Files that other programs may shorten meanwhile are out of scope: ours are replaced by rename,
/// never rewritten.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

/// A file under construction: written to `path`.tmp beside its place, and put there by commit() alone. Until
/// then, and whatever happens (disk full, exception, kill -9), what was at `path` before stays untouched and
/// complete. One writer per path at a time.
class AtomicFile {
 public:
  /// `bytes_needed`: for the sentence when the disk is full. UsageError when the folder is not writable.
  AtomicFile(std::string path, i64 bytes_needed);
  ~AtomicFile();  ///< removes the temporary file unless committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data,
             std::size_t bytes);  ///< appends; UsageError with path and bytes needed when it cannot
  /// Makes the temporary file durable (fsync) without putting it in place yet, so that it can be read back
  /// first.
  void sync();
  /// sync, then rename over `path`, then fsync of the folder: afterwards the new file survives a power cut.
  void commit();
  const std::string& temporary() const { return temporary_; }

 private:
  [[noreturn]] void give_up(const char* doing);
  void close_and_remove();
  std::string path_, temporary_;
  i64 bytes_needed_;
  int fd_ = -1;
  bool synced_ = false;
};

/// Makes renames in the folder of `path` durable.
void sync_folder_of(const std::string& path);

}  // namespace shardlings::data
