#include "lab/progress.hpp"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"

namespace shardlings::lab {

std::string local_time(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

Progress::Progress(std::filesystem::path file) : file_(std::move(file)) {
  std::ifstream in(file_);
  if (!in) return;
  try {
    const nlohmann::json document = nlohmann::json::parse(in);
    for (const auto& [slug, entry] : document.at("lessons").items()) {
      LessonProgress& lesson = lessons_[slug];
      lesson.passed = entry.value("passed", false);
      lesson.gave_up = entry.value("gave_up", false);
      lesson.attempts = entry.value("attempts", 0);
      lesson.passed_at = entry.value("passed_at", "");
      lesson.hints = entry.value("hints", std::map<std::string, int>{});
    }
  } catch (const nlohmann::json::exception&) {
    lessons_.clear();
    std::filesystem::path aside = file_;
    aside += local_time(".unreadable-%Y%m%d-%H%M%S");
    std::filesystem::rename(file_, aside);
    fmt::print(stderr, "lab: {} could not be understood; it is kept as {} and progress starts anew\n",
               file_.string(), aside.filename().string());
  }
}

const LessonProgress& Progress::of(const std::string& slug) const {
  static const LessonProgress none;
  const auto found = lessons_.find(slug);
  return found == lessons_.end() ? none : found->second;
}

void Progress::save() const {
  nlohmann::json document;
  document["lessons"] = nlohmann::json::object();
  for (const auto& [slug, lesson] : lessons_) {
    document["lessons"][slug] = {{"passed", lesson.passed},
                                 {"gave_up", lesson.gave_up},
                                 {"attempts", lesson.attempts},
                                 {"passed_at", lesson.passed_at},
                                 {"hints", lesson.hints}};
  }
  std::filesystem::create_directories(file_.parent_path());
  std::filesystem::path beside = file_;
  beside += ".new";
  std::ofstream out(beside);
  out << document.dump(2) << "\n";
  out.close();
  require(out.good(), [&] { return fmt::format("cannot write {}: is the disk full?", beside.string()); });
  std::filesystem::rename(beside, file_);
}

}  // namespace shardlings::lab
