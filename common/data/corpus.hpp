#pragma once
// Text as documents, checked when it is read, and its split into training and validation documents.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"

namespace shardlings::data {

struct Corpus {
  std::vector<std::string> documents;  ///< UTF-8, none of them empty, without zero bytes
  i64 bytes() const;
};

/// A folder: every *.txt in it is a document, in the order of their names; a file CHECKSUMS (lines of
/// `cksum`: CRC, bytes, name) beside the folder is verified for all documents of this folder it names. A
/// single file: documents separated by lines
/// `<|endoftext|>`, or one document if there is no such line. UsageError (a sentence that says what to do)
/// when it is missing, empty, not UTF-8, has zero bytes, or differs from its checksum.
Corpus load_corpus(const std::string& path);

struct Split {
  Corpus train, validation;
};
/// Whole documents: the last round(fraction * n), but at least 1, of a fixed pseudo-random permutation of
/// them are for validation; the order inside both parts is the corpus's. A single document is cut instead,
/// after the last line or word that ends within its first 1 - fraction. UsageError when there is not enough
/// text for two parts.
Split split(const Corpus& corpus, double fraction = 0.1, std::uint64_t seed = 2021);

/// Offset of the first byte that is not valid UTF-8, if any.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace shardlings::data
