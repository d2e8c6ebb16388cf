// The file format: readable by others, written whole or not at all, no damage unnoticed.
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <numeric>

#include "data_fixture.hpp"
#include "run/safetensors.hpp"

namespace shardlings::run {
namespace {

/// A header and data as another program would write them.
std::string foreign_file(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + data;
}

/// Tensors of every type, with odd numbers of elements, a scalar and an empty one.
class Tensors {
 public:
  Tensors() {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::byte>(i * 37 + 11);
    add("half", DType::bf16, {3});
    add("number", DType::f64, {});
    add("none", DType::f32, {0, 4});
    add("matrix", DType::f32, {3, 5});
    add("tokens", DType::i32, {7});
    add("other_half", DType::f16, {1, 1, 5});
  }
  std::vector<NamedTensor> views;

 private:
  void add(const std::string& name, DType dtype, const Shape& shape) {
    views.push_back({name, dtype, shape, memory_.data() + used_});
    used_ += static_cast<std::size_t>(numel_of(shape) * size_of(dtype));
  }
  std::array<std::byte, 256> memory_{};
  std::size_t used_ = 0;
};

bool equal(const NamedTensor& a, const NamedTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::memcmp(a.data, b.data, static_cast<std::size_t>(numel_of(a.shape) * size_of(a.dtype))) == 0;
}

/// While it lives, files cannot grow beyond `bytes`: what a full disk looks like to a program.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int);
};

using Safetensors = InTempFolder;

TEST_F(Safetensors, ReadsBackEveryType) {
  const Tensors tensors;
  save_safetensors(at("a"), tensors.views, {{"step", "12"}, {"odd", "\"quoted\" \n \xc3\xa9"}});
  const SafetensorsFile file(at("a"));
  EXPECT_EQ(file.names().size(), tensors.views.size());
  for (const NamedTensor& t : tensors.views) EXPECT_TRUE(equal(file.find(t.name), t)) << t.name;
  EXPECT_EQ(file.metadata().at("step"), "12");
  EXPECT_EQ(file.metadata().at("odd"), "\"quoted\" \n \xc3\xa9");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_TRUE(file.has_checksum());
  expect_refused([&] { (void)file.find("nothing"); }, at("a"), "nothing", "6");
}

TEST_F(Safetensors, AlignsHeaderAndData) {
  const Tensors tensors;
  save_safetensors(at("a"), tensors.views, {});
  std::uint64_t length = 0;
  std::memcpy(&length, read("a").data(), sizeof length);
  EXPECT_EQ(length % 8, 0U);
  const SafetensorsFile file(at("a"));
  for (const NamedTensor& t : tensors.views) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.find(t.name).data) %
                  static_cast<std::uintptr_t>(size_of(t.dtype)),
              0U)
        << t.name;
  }
}

TEST_F(Safetensors, ReadsFilesOfOthers) {
  // Written out by hand after the format's description: no padding, no checksum, a type we have no use for.
  const float values[2] = {1.5F, -2.0F};
  std::string data(12, '\x01');
  std::memcpy(data.data() + 4, values, 8);
  write("b", foreign_file(R"({"x":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},)"
                          R"("mask":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})",
                          data));
  const SafetensorsFile file(at("b"));
  EXPECT_FALSE(file.has_checksum());
  EXPECT_TRUE(equal(file.find("x"), {"x", DType::f32, {2, 1}, reinterpret_cast<const std::byte*>(values)}));
  expect_refused([&] { (void)file.find("mask"); }, "mask", "BOOL");
}

TEST_F(Safetensors, NoticesEveryTruncation) {
  const Tensors tensors;
  save_safetensors(at("a"), tensors.views, {{"step", "12"}});
  const std::string good = read("a");
  write("cut", good);
  for (std::size_t length = good.size(); length-- > 0;) {
    std::filesystem::resize_file(at("cut"), length);
    expect_refused([&] { SafetensorsFile file(at("cut")); }, at("cut"), std::to_string(length));
  }
  write("cut", good + "x");
  expect_refused([&] { SafetensorsFile file(at("cut")); }, std::to_string(good.size()),
                 std::to_string(good.size() + 1));
}

TEST_F(Safetensors, NoticesEveryChangedBit) {
  const Tensors tensors;
  save_safetensors(at("a"), tensors.views, {{"step", "12"}});
  const std::string good = read("a");
  write("bad", good);
  std::fstream file(at("bad"), std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&file](std::size_t i, char byte) {
    file.seekp(static_cast<std::streamoff>(i));
    file.put(byte).flush();
  };
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    put(bit / 8, static_cast<char>(good[bit / 8] ^ (1 << bit % 8)));
    try {
      // A changed name of the checksum's entry hides the checksum: then the file does not count as one of
      // ours.
      EXPECT_FALSE(SafetensorsFile(at("bad")).has_checksum()) << "bit " << bit % 8 << " of byte " << bit / 8;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(at("bad")), std::string::npos) << error.what();
    }
    put(bit / 8, good[bit / 8]);
  }
}

TEST_F(Safetensors, RefusesHeadersThatLie) {
  const auto refused = [&](const std::string& header, const std::string& data, const std::string& part) {
    write("bad", foreign_file(header, data));
    expect_refused([&] { SafetensorsFile file(at("bad")); }, at("bad"), part);
  };
  const std::string data(16, 'd');
  refused(R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})", data,
          "[3]");  // shape and place differ
  refused(R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}})", data, "should begin at 0");  // a hole
  refused(
      R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"y":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
      data, "should begin at 16");  // overlap
  refused(R"({"x":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})", data, "[-4]");
  refused(R"({"x":{"dtype":"F32","shape":[4611686018427387908],"data_offsets":[0,16]}})", data,
          "4611686018427387908");
  refused(R"({"x":{"dtype":"Q4","shape":[4],"data_offsets":[0,16]}})", data, "Q4");
  refused(R"({"x":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}})", data, "truncated");
  refused(R"({"x":{"shape":[4],"data_offsets":[0,16]}})", data, "header");
  refused(R"({"x":{"dtype":"F32")", data, "header of 19 bytes");
  write("bad", "PK\x03\x04 some other kind of file");
  expect_refused([&] { SafetensorsFile file(at("bad")); }, "not a safetensors file");
  write("bad", "");
  expect_refused([&] { SafetensorsFile file(at("bad")); }, "0 bytes");
}

TEST_F(Safetensors, KeepsTheOldFileWhenTheDiskIsFull) {
  const Tensors tensors;
  save_safetensors(at("a"), tensors.views, {{"step", "1"}});
  const std::string old = read("a");
  std::vector<float> much(20000, 1.0F);
  const NamedTensor large{"large", DType::f32, {20000}, reinterpret_cast<const std::byte*>(much.data())};
  std::string sentence;
  for (rlim_t bytes :
       {rlim_t{0}, rlim_t{4096}, rlim_t{80000}}) {  // in the header, in the data, at its very end
    const FullDisk full(bytes);
    sentence = refusal([&] { save_safetensors(at("a"), std::span(&large, 1), {}); });
  }
  EXPECT_NE(sentence.find(at("a")), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("80144 bytes are needed"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("File too large"), std::string::npos) << sentence;
  EXPECT_TRUE(read("a") == old);
  EXPECT_FALSE(std::filesystem::exists(at("a.tmp")));
  save_safetensors(at("a"), std::span(&large, 1), {});
  EXPECT_TRUE(equal(SafetensorsFile(at("a")).find("large"), large));
}

TEST_F(Safetensors, RefusesTwoTensorsOfOneName) {
  const Tensors tensors;
  const std::vector<NamedTensor> twice{tensors.views[0], tensors.views[0]};
  EXPECT_THROW(save_safetensors(at("a"), twice, {}), Error);
  EXPECT_FALSE(std::filesystem::exists(at("a")));
}

}  // namespace
}  // namespace shardlings::run
