#include "core/error.hpp"

#include <string_view>

namespace shardlings {

void fail(const std::string& what) { throw Error(what); }
void fail_usage(const std::string& what) { throw UsageError(what); }

void fail_todo(const char* file, int line, const char* what) {
  std::string_view path = file;
  for (std::string_view root : {"exercises/", "solutions/", "lessons/", "tests/", "common/"}) {
    if (const auto at = path.rfind(root); at != std::string_view::npos) {
      path = path.substr(at);
      break;
    }
  }
  throw Todo("TODO " + std::string(path) + ":" + std::to_string(line) + "  " + what);
}

}  // namespace shardlings
