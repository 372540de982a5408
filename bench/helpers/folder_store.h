// A store for the ranks of a benchmark: a file for each value, in a folder that goes with its owner.
#pragma once
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "comm/rendezvous/store.h"

namespace fleetrun::bench {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "fleetrun-bench-XXXXXX").string();
};

class FolderStore : public comm::Store {
 public:
  explicit FolderStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void set(const std::string& key, const std::string& value) override {
    const auto file = folder_ / name_of(key);
    std::ofstream(file.string() + ".new", std::ios::binary) << value;
    std::filesystem::rename(file.string() + ".new", file);
  }
  std::string get(const std::string& key, comm::Deadline deadline) override {
    while (!deadline.passed()) {
      if (auto value = look(key)) return *value;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw std::runtime_error("nobody set " + key);
  }
  std::optional<std::string> look(const std::string& key) override {
    std::ifstream file(folder_ / name_of(key), std::ios::binary);
    if (!file) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  static std::string name_of(std::string key) {
    std::replace(key.begin(), key.end(), '/', '_');
    return key;
  }
  const std::filesystem::path folder_;
};

}  // namespace fleetrun::bench
