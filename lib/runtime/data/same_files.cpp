#include "runtime/data/same_files.h"

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <unordered_map>

namespace fleetrun::runtime {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // one after another, as in Linux (path_resolution(7))

struct RealFolder {
  std::string path;  // without links
  bool has_links = false;
};

RealFolder look_into(const std::string& folder) {
  RealFolder real = {folder};
  std::error_code problem;
  const fs::path path = fs::canonical(folder.empty() ? "." : folder, problem);
  if (problem) return real;
  real.path = path.string();
  fs::directory_iterator entry(path, problem);
  for (; !problem && entry != fs::directory_iterator() && !real.has_links; entry.increment(problem)) {
    std::error_code unknown;
    real.has_links = entry->is_symlink(unknown);
  }
  real.has_links |= static_cast<bool>(problem);  // nobody knows: each file is asked
  return real;
}

// Names each sample by the real path of its file. Millions of files lie in few folders, so it asks the file system for each folder once,
// and for single files only where a folder has links.
class RealSources {
 public:
  std::string operator()(const DataSet& set, int sample) {
    std::string path = set.source_of(sample);
    for (int links = 0; links < kMostLinks; ++links) {
      const std::size_t name = path.rfind('/') + 1;  // 0 without a folder
      const RealFolder& folder = folder_of(path.substr(0, name));
      path = folder.path + "/" + path.substr(name);
      if (!folder.has_links) break;
      std::error_code is_no_link;
      const fs::path target = fs::read_symlink(path, is_no_link);
      if (is_no_link) break;
      path = (fs::path(folder.path) / target).string();  // an absolute target replaces the folder
    }
    return path;
  }

 private:
  const RealFolder& folder_of(const std::string& folder) {
    const auto found = folders_.find(folder);
    return found != folders_.end() ? found->second
                                   : folders_.emplace(folder, look_into(folder)).first->second;
  }

  std::unordered_map<std::string, RealFolder> folders_;
};

}  // namespace

std::vector<std::int32_t> find_first_copies(const DataSet& set) {
  RealSources source;
  std::unordered_map<std::size_t, std::int32_t> by_hash;  // a million paths would take too much memory
  std::vector<std::int32_t> first(static_cast<std::size_t>(set.size()));
  for (std::int32_t sample = 0; sample < set.size(); ++sample) {
    const std::string file = source(set, sample);
    const std::int32_t found = by_hash.try_emplace(std::hash<std::string>()(file), sample).first->second;
    const bool is_copy = found != sample && source(set, found) == file;
    first[static_cast<std::size_t>(sample)] = is_copy ? found : sample;
  }
  return first;
}

int count_shared_samples(const DataSet& test, const DataSet& train) {
  RealSources source;
  std::unordered_map<std::string, int> of_test;
  for (int sample = 0; sample < test.size(); ++sample) ++of_test[source(test, sample)];
  int shared = 0;
  for (int sample = 0; sample < train.size() && !of_test.empty(); ++sample) {
    const auto found = of_test.find(source(train, sample));
    if (found == of_test.end()) continue;
    shared += found->second;
    of_test.erase(found);
  }
  return shared;
}

}  // namespace fleetrun::runtime
