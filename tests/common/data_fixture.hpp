#pragma once
// A folder of its own for each test of files, and short ways to make, damage and read them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/error.hpp"

namespace shardlings {

class InTempFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "shardlings-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream(at(name), std::ios::binary) << bytes;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_;
};

/// The sentence of the UsageError that `action` throws; "" and a failure if it throws none.
template <class F>
std::string refusal(F&& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

/// Expects that `action` throws a UsageError whose sentence has each of the parts.
template <class F, class... Parts>
void expect_refused(F&& action, const Parts&... parts) {
  const std::string sentence = refusal(action);
  for (const std::string& part : {std::string(parts)...}) {
    EXPECT_NE(sentence.find(part), std::string::npos) << "\"" << part << "\" is missing in: " << sentence;
  }
}

}  // namespace shardlings
