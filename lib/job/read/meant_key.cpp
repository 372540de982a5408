#include "job/read/meant_key.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text/suggest.h"

namespace fleetrun::job {
namespace {

// As scripts of PyTorch and others call them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kUsualNames = {{
    {"lr", "optimizer.learning_rate"},
    {"bs", "data.batch_size"},
    {"wd", "optimizer.weight_decay"},
    {"workers", "data.loader_threads"},
    {"num_workers", "data.loader_threads"},
    {"steps", "train.max_steps"},
    {"arch", "model.name"},
    {"output", "output.dir"},
}};

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::ptrdiff_t depth(const std::string& path) { return std::count(path.begin(), path.end(), '.'); }

}  // namespace

std::optional<std::string> meant_key(std::string_view name, const Key& keys) {
  for (const auto& [usual, path] : kUsualNames)
    if (name == usual) return std::string(path);
  std::vector<std::string> paths, names;
  for_each_key(keys, [&](const std::string& path, const Key& key) {
    if (key.rules.support == Support::yes && !key.is_object()) paths.push_back(path);
  });
  std::stable_sort(paths.begin(), paths.end(), [](auto& a, auto& b) { return depth(a) < depth(b); });
  for (const std::string& path : paths) names.push_back(last_part(path));
  const std::optional<std::string> nearest = closest(name, names);
  if (!nearest) return std::nullopt;
  return paths[static_cast<std::size_t>(std::find(names.begin(), names.end(), *nearest) - names.begin())];
}

}  // namespace fleetrun::job
