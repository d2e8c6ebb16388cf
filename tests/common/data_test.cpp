// Checksums, atomic files, the shuffle, the corpus and its split.
#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "data/checksum.hpp"
#include "data/corpus.hpp"
#include "data/files.hpp"
#include "data/shuffle.hpp"
#include "data_fixture.hpp"

namespace shardlings::data {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(DataChecksum, CksumIsThatOfPosix) {
  EXPECT_EQ(posix_cksum(bytes_of("123456789")),
            930766865U);  // the check value of POSIX's CRC: `printf 123456789 | cksum`
  EXPECT_EQ(posix_cksum({}), 4294967295U);
  EXPECT_EQ(posix_cksum(bytes_of(std::string(70000, 'x'))), 4215398528U);  // a length of three bytes
}

TEST(DataChecksum, Xxh64IsThatOfXxhsum) {
  EXPECT_EQ(xxh64({}), 0xef46db3751d8e999U);
  EXPECT_EQ(xxh64(bytes_of("abc")), 0x44bc2cf5ad770999U);  // bytes only
  EXPECT_EQ(xxh64(bytes_of("Nobody inspects the spammish repetition")),
            0xfbcea83c8a378bf1U);  // lanes, words and bytes
  EXPECT_NE(xxh64(bytes_of("abc"), 1), xxh64(bytes_of("abc")));
}

using AtomicFileTest = InTempFolder;

TEST_F(AtomicFileTest, AppearsOnlyWithCommit) {
  write("x", "old");
  {
    AtomicFile file(at("x"), 3);
    file.write("new", 3);
    EXPECT_EQ(read("x"), "old");
  }
  EXPECT_EQ(read("x"), "old");
  EXPECT_FALSE(std::filesystem::exists(at("x.tmp")));
  AtomicFile file(at("x"), 3);
  file.write("new", 3);
  file.commit();
  EXPECT_EQ(read("x"), "new");
  EXPECT_FALSE(std::filesystem::exists(at("x.tmp")));
}

TEST_F(AtomicFileTest, SaysPathAndBytesWhenTheFolderIsNotThere) {
  expect_refused([&] { AtomicFile(at("none/x"), 12345); }, at("none/x"), "12345 bytes", "No such file");
}

TEST_F(AtomicFileTest, MapsAFileAndRefusesAFolder) {
  write("x", "abc");
  write("empty", "");
  MappedFile file(at("x"));
  const MappedFile moved = std::move(file);
  EXPECT_EQ(std::to_integer<char>(moved.bytes()[2]), 'c');
  EXPECT_TRUE(MappedFile(at("empty")).bytes().empty());
  expect_refused([&] { MappedFile(folder_.string()); }, folder_.string(), "not a file");
  expect_refused([&] { MappedFile(at("none")); }, at("none"), "No such file");
}

TEST(DataShuffle, IsAPermutationOfAnyLength) {
  for (i64 n : {1, 2, 3, 4, 5, 22, 64, 65, 1000}) {
    std::set<i64> seen;
    for (i64 i = 0; i < n; ++i) seen.insert(shuffled(i, n, 7));
    EXPECT_EQ(static_cast<i64>(seen.size()), n);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
}

TEST(DataShuffle, PutsEveryElementEverywhere) {
  // Over 20,000 keys each of the 8 x 8 (element, place) pairs is expected 2500 times; 5 standard deviations
  // are 234.
  constexpr i64 kN = 8, kKeys = 20000;
  std::array<std::array<int, kN>, kN> count{};
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    for (i64 i = 0; i < kN; ++i)
      ++count[static_cast<std::size_t>(i)][static_cast<std::size_t>(shuffled(i, kN, key))];
  }
  for (const auto& row : count) {
    for (int c : row) EXPECT_NEAR(c, kKeys / kN, 234);
  }
}

using CorpusTest = InTempFolder;

TEST_F(CorpusTest, ReadsAFolderInTheOrderOfNames) {
  write("text/b.txt", "second");
  write("text/a.txt", "first");
  write("text/LICENSE", "not a document");
  const Corpus corpus = load_corpus(at("text"));
  EXPECT_EQ(corpus.documents, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(corpus.bytes(), 11);
}

TEST_F(CorpusTest, CutsAFileAtMarkers) {
  write("one.txt", "a\nb\n<|endoftext|>\nc\n<|endoftext|>\n\n");
  EXPECT_EQ(load_corpus(at("one.txt")).documents, (std::vector<std::string>{"a\nb\n", "c\n"}));
  write("plain.txt", "a\nb");
  EXPECT_EQ(load_corpus(at("plain.txt")).documents, (std::vector<std::string>{"a\nb"}));
}

TEST_F(CorpusTest, VerifiesRecordedChecksums) {
  write("text/a.txt", "123456789");
  write("CHECKSUMS", "930766865 9 text/a.txt\n1 1 other/x.txt\n");
  EXPECT_EQ(load_corpus(at("text")).documents.size(), 1U);
  EXPECT_EQ(load_corpus(at("text/")).documents.size(), 1U);
  write("text/a.txt", "123456780");  // one bit
  for (const char* name : {"text", "text/"}) {
    expect_refused([&] { load_corpus(at(name)); }, "a.txt has changed", "930766865", "./lab setup");
  }
  write("text/a.txt", "1234567");
  expect_refused([&] { load_corpus(at("text")); }, "7 bytes", "recorded were 9");
  write("text/a.txt", "123456789");
  write("text/mine.txt", "more");
  expect_refused([&] { load_corpus(at("text")); }, "mine.txt", "not one of the 1 documents");
  std::filesystem::remove(at("text/mine.txt"));
  write("CHECKSUMS", "930766865 9 text/a.txt\n1 1 text/b.txt\n");
  expect_refused([&] { load_corpus(at("text")); }, "1 of 2 documents", "b.txt is missing", "./lab setup");
}

TEST_F(CorpusTest, RefusesWhatIsNotText) {
  expect_refused([&] { load_corpus(at("none")); }, at("none"), "run ./lab setup");
  std::filesystem::create_directory(at("empty"));
  expect_refused([&] { load_corpus(at("empty")); }, "no *.txt", "./lab setup");
  write("a/a.txt", "");
  expect_refused([&] { load_corpus(at("a")); }, "a.txt is empty", "./lab setup");
  write("b.txt", std::string("ab\0d", 4));
  expect_refused([&] { load_corpus(at("b.txt")); }, "byte 2 of 4 is zero");
  write("c.txt", "abc\xffg");
  expect_refused([&] { load_corpus(at("c.txt")); }, "byte 3 of 5 is 0xff", "UTF-8");
  write("d.txt", " \n \n");
  expect_refused([&] { load_corpus(at("d.txt")); }, "only white space");
}

TEST(CorpusUtf8, FindsEveryKindOfDamage) {
  EXPECT_FALSE(first_invalid_utf8("plain, \xc2\xb0 \xe2\x80\x94 \xf0\x90\x8c\xb0"));
  EXPECT_EQ(first_invalid_utf8("a\x80"), 1U);             // continuation without a lead
  EXPECT_EQ(first_invalid_utf8("a\xe2\x80"), 1U);         // cut off
  EXPECT_EQ(first_invalid_utf8("\xc0\xaf"), 0U);          // too long for its value
  EXPECT_EQ(first_invalid_utf8("\xed\xa0\x80"), 0U);      // surrogate
  EXPECT_EQ(first_invalid_utf8("\xf4\x90\x80\x80"), 0U);  // above U+10FFFF
  EXPECT_EQ(first_invalid_utf8("\xc2z"), 0U);             // wrong continuation
}

TEST(CorpusSplit, TakesWholeDocumentsAndLosesNone) {
  Corpus corpus;
  for (int i = 0; i < 50; ++i) corpus.documents.push_back("document " + std::to_string(i));
  const Split parts = split(corpus);
  EXPECT_EQ(parts.validation.documents.size(), 5U);
  std::vector<std::string> all = parts.train.documents;
  all.insert(all.end(), parts.validation.documents.begin(), parts.validation.documents.end());
  std::sort(all.begin(), all.end());
  std::sort(corpus.documents.begin(), corpus.documents.end());
  EXPECT_EQ(all, corpus.documents);
}

TEST(CorpusSplit, IsTheSameEveryTimeAndNotTheTail) {
  Corpus corpus;
  for (int i = 0; i < 50; ++i) corpus.documents.push_back(std::to_string(100 + i));
  EXPECT_EQ(split(corpus).validation.documents, split(corpus).validation.documents);
  EXPECT_NE(split(corpus).validation.documents, split(corpus, 0.1, 1).validation.documents);
  EXPECT_LT(split(corpus).validation.documents.front(), "145");  // not only the newest
  const std::vector<std::string> train = split(corpus).train.documents;
  EXPECT_TRUE(std::is_sorted(train.begin(), train.end()));
}

TEST(CorpusSplit, CutsASingleDocumentAtALineOrAWord) {
  const Corpus lines{{"one\ntwo\nthree\nfour\nfive\n"}};
  Split parts = split(lines, 0.3);
  EXPECT_EQ(parts.train.documents[0], "one\ntwo\nthree\n");
  EXPECT_EQ(parts.validation.documents[0], "four\nfive\n");
  parts = split(Corpus{{"some words in one line"}}, 0.3);
  EXPECT_EQ(parts.train.documents[0] + parts.validation.documents[0], "some words in one line");
  EXPECT_EQ(parts.validation.documents[0], "one line");
  expect_refused([] { split(Corpus{{"word"}}); }, "too short", "4 bytes");
  expect_refused([] { split(Corpus{}); }, "0 documents");
  expect_refused([&] { split(lines, 1.0); }, "validation fraction 1");
}

}  // namespace
}  // namespace shardlings::data
