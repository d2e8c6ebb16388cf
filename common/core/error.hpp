#pragma once
// Errors are sentences with numbers. Error: something went wrong (exit code 1). UsageError: what was asked
// for cannot be done (exit code 2, before training where possible). Todo: a gap that the learner has not
// filled yet.
#include <stdexcept>
#include <string>

namespace shardlings {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the user asked for is impossible; programs print the sentence and leave with exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Thrown by LAB_TODO: the learner's code is still to be written.
class Todo : public Error {
 public:
  using Error::Error;
};

[[noreturn]] void fail(const std::string& what);        ///< throws Error
[[noreturn]] void fail_usage(const std::string& what);  ///< throws UsageError
[[noreturn]] void fail_todo(const char* file, int line, const char* what);

/// Throws Error(what) unless ok. The text is only built into a std::string when it is needed.
inline void require(bool ok, const char* what) {
  if (!ok) fail(what);
}
/// The same for a sentence with numbers: `require(a == b, [&] { return fmt::format(…); })`.
template <class Sentence>
requires requires(Sentence s) { std::string(s()); }
void require(bool ok, Sentence&& sentence) {
  if (!ok) fail(sentence());
}

}  // namespace shardlings

/// Marks a gap of an exercise: throws with file and line, so that a stub can never pass by accident.
#define LAB_TODO(what) ::shardlings::fail_todo(__FILE__, __LINE__, what)
