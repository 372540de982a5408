#include "runtime/data/same_files.h"

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <unordered_map>

namespace fleetrun::runtime {
namespace {

// Names each sample by the real path of its folder. Millions of files lie in few folders, so it asks the file system for each folder
// once.
class RealSources {
 public:
  std::string operator()(const DataSet& set, int sample) {
    const std::string source = set.source_of(sample);
    const std::size_t name = source.rfind('/') + 1;  // 0 if there is no folder
    return real_folder(source.substr(0, name)) + "/" + source.substr(name);
  }

 private:
  const std::string& real_folder(const std::string& folder) {
    const auto [found, is_new] = real_.try_emplace(folder, folder);
    std::error_code problem;
    const auto real =
        is_new ? std::filesystem::canonical(folder.empty() ? "." : folder, problem) : std::filesystem::path();
    if (is_new && !problem) found->second = real.string();
    return found->second;
  }

  std::unordered_map<std::string, std::string> real_;
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
