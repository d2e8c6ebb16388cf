#include "lab/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "lab/suggest.hpp"

namespace shardlings::lab {

struct Options::Parser {
  Parser(const std::string& name, const std::string& description)
      : verb(name), app(description, "./lab " + name) {
    app.allow_extras();  // an unknown flag gets our own sentence, with a guess
  }
  std::string verb;
  CLI::App app;
  std::vector<std::string> flags{"--help"};
};

Options::Options(const std::string& verb, const std::string& description)
    : parser_(std::make_unique<Parser>(verb, description)) {}
Options::~Options() = default;

void Options::word(const std::string& name, std::string& value, const std::string& help, bool required) {
  parser_->app.add_option(name, value, help)->required(required);
}
void Options::flag(const std::string& name, bool& value, const std::string& help) {
  parser_->app.add_flag(name, value, help);
  parser_->flags.push_back(name);
}
void Options::option(const std::string& name, std::string& value, const std::string& help) {
  parser_->app.add_option(name, value, help);
  parser_->flags.push_back(name);
}
void Options::option(const std::string& name, int& value, const std::string& help) {
  parser_->app.add_option(name, value, help);
  parser_->flags.push_back(name);
}

std::optional<int> Options::parse(const Words& words) {
  Words reversed(words.rbegin(), words.rend());  // as CLI11 takes a vector
  try {
    parser_->app.parse(reversed);
  } catch (const CLI::CallForHelp& help) {
    return parser_->app.exit(help);
  } catch (const CLI::ParseError& error) {
    fail_usage(fmt::format("./lab {}: {}", parser_->verb, error.what()));
  }
  const Words rest = parser_->app.remaining();
  if (!rest.empty()) {
    const bool flag = rest[0].rfind('-', 0) == 0;
    fail_usage(
        flag ? fmt::format("./lab {}: {}", parser_->verb, unknown_sentence("flag", rest[0], parser_->flags))
             : fmt::format("./lab {}: \"{}\" is one word too many", parser_->verb, rest[0]));
  }
  return std::nullopt;
}

}  // namespace shardlings::lab
