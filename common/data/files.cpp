#include "data/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace shardlings::data {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

std::string folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

/// Closes a descriptor at the end of a scope.
struct Closer {
  int fd;
  explicit Closer(int descriptor) : fd(descriptor) {}
  ~Closer() {
    if (fd >= 0) ::close(fd);
  }
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const Closer file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) fail_usage(fmt::format("cannot read {}: {}", path, reason(errno)));
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) fail_usage(fmt::format("cannot read {}: {}", path, reason(errno)));
  if (!S_ISREG(info.st_mode)) fail_usage(fmt::format("cannot read {}: it is not a file", path));
  if (info.st_size == 0) return;  // an empty file cannot be mapped
  const auto size = static_cast<std::size_t>(info.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (memory == MAP_FAILED)
    fail_usage(fmt::format("cannot map {} ({} bytes): {}", path, size, reason(errno)));
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

AtomicFile::AtomicFile(std::string path, i64 bytes_needed)
    : path_(std::move(path)), temporary_(path_ + ".tmp"), bytes_needed_(bytes_needed) {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) give_up("open");
}

AtomicFile::~AtomicFile() { close_and_remove(); }

void AtomicFile::close_and_remove() {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  ::unlink(temporary_.c_str());
}

void AtomicFile::give_up(const char* doing) {
  const int code = errno;
  close_and_remove();
  std::string free = "unknown";
  struct statvfs disk {};
  if (::statvfs(folder_of(path_).c_str(), &disk) == 0) free = std::to_string(disk.f_bavail * disk.f_frsize);
  fail_usage(
      fmt::format("cannot save {} ({} failed: {}): {} bytes are needed, {} are free there; the file that was "
                  "there before is untouched",
                  path_, doing, reason(code), bytes_needed_, free));
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd_, p, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) give_up("write");
    p += written;
    bytes -= static_cast<std::size_t>(written);
  }
  synced_ = false;
}

void AtomicFile::sync() {
  if (::fsync(fd_) != 0) give_up("fsync");
  synced_ = true;
}

void AtomicFile::commit() {
  if (!synced_) sync();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) give_up("rename");
  ::close(std::exchange(fd_, -1));
  sync_folder_of(path_);
}

void sync_folder_of(const std::string& path) {
  const Closer folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd >= 0) ::fsync(folder.fd);  // some file systems cannot; the rename itself is done all the same
}

}  // namespace shardlings::data
