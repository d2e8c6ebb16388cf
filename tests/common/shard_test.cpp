// Token shards as llm.c writes them.
#include <cstring>
#include <numeric>

#include "data/shard.hpp"
#include "data_fixture.hpp"

namespace shardlings::data {
namespace {

using TokenShardTest = InTempFolder;

TEST_F(TokenShardTest, HasTheLayoutOfLlmC) {
  const std::vector<std::uint16_t> tokens{50256, 1, 65535};
  write_shard(at("a.bin"), tokens);
  // By hand: 256 int32 (magic, version, count, zeros), then uint16, all little-endian.
  std::string expected(1024, '\0');
  expected.replace(0, 12, std::string("\x88\xd8\x34\x01\x01\0\0\0\x03\0\0\0", 12));
  expected += std::string("\x50\xc4\x01\0\xff\xff", 6);
  EXPECT_TRUE(read("a.bin") == expected);
}

TEST_F(TokenShardTest, ReadsBackWhatWasWritten) {
  std::vector<std::uint16_t> tokens(1000);
  std::iota(tokens.begin(), tokens.end(), std::uint16_t{65000});  // wraps: all values are allowed
  write_shard(at("a.bin"), tokens);
  const TokenShard shard(at("a.bin"));
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), shard.tokens().begin(), shard.tokens().end()));
  write_shard(at("empty.bin"), {});
  EXPECT_TRUE(TokenShard(at("empty.bin")).tokens().empty());
}

TEST_F(TokenShardTest, RefusesWithNumbers) {
  write_shard(at("a.bin"), std::vector<std::uint16_t>(100, 7));
  const std::string good = read("a.bin");
  write("short.bin", good.substr(0, 1223));
  expect_refused([&] { TokenShard(at("short.bin")); }, "short.bin", "100 tokens", "1224 bytes", "has 1223");
  write("long.bin", good + "xx");
  expect_refused([&] { TokenShard(at("long.bin")); }, "1224 bytes", "has 1226");
  write("tiny.bin", "abc");
  expect_refused([&] { TokenShard(at("tiny.bin")); }, "it has 3 bytes", "1024");
  write("foreign.bin", std::string(2000, 'a'));
  expect_refused([&] { TokenShard(at("foreign.bin")); }, "not a token shard", "1633771873", "20240520");
  std::string version = good;
  version[4] = 2;
  write("version.bin", version);
  expect_refused([&] { TokenShard(at("version.bin")); }, "version 2", "version 1");
  std::string negative = good;
  negative[11] = '\xff';
  write("negative.bin", negative);
  expect_refused([&] { TokenShard(at("negative.bin")); }, "negative.bin", "-16777116 tokens");
  expect_refused([&] { TokenShard(at("none.bin")); }, "none.bin", "No such file");
}

}  // namespace
}  // namespace shardlings::data
