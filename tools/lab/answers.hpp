#pragma once
// "Predict first": the learner writes answers.txt before the run, and `lab check` grades it against the
// manifest.
#include <map>
#include <string>

#include "manifest/manifest.hpp"

namespace shardlings::lab {

/// Lines `key = number`; '#' begins a comment; an empty value or '?' is no answer yet. Throws UsageError,
/// with the number of the line, for anything else and for a key that comes twice.
std::map<std::string, double> parse_answers(const std::string& text);

enum class Grade { kMissing, kRight, kTooLow, kTooHigh };
Grade grade(const manifest::Question& question, const std::map<std::string, double>& answers);

}  // namespace shardlings::lab
