#pragma once
// The words after a verb. A thin cover of CLI11, which is slow to compile and stays in one file.
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardlings::lab {

using Words = std::vector<std::string>;

class Options {
 public:
  Options(const std::string& verb, const std::string& description);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  void word(const std::string& name, std::string& value, const std::string& help, bool required = false);
  void flag(const std::string& name, bool& value, const std::string& help);
  void option(const std::string& name, std::string& value, const std::string& help);
  void option(const std::string& name, int& value, const std::string& help);
  /// Reads the words. After --help: the text is printed and 0 returned, and the verb has nothing left to do.
  /// Throws UsageError, one sentence, for what is not understood.
  std::optional<int> parse(const Words& words);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace shardlings::lab
