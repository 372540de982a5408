#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/data/formats.h"
#include "runtime/data/image_file_set.h"

namespace fleetrun::runtime {
namespace {

namespace fs = std::filesystem;

struct ClassFiles {
  std::vector<std::string> class_names;
  std::vector<std::string> paths;
  std::vector<std::int32_t> labels;
};

bool is_image_name(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// The names in a folder that are folders (or are not), hidden ones left out, in byte order.
std::vector<std::string> names_in(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entries(folder, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    std::error_code ignored;  // an entry that cannot be looked at is no folder
    std::string name = entries->path().filename().string();
    if (name.front() != '.' && entries->is_directory(ignored) == folders) names.push_back(std::move(name));
  }
  if (problem) throw file_error(problem.value(), "reading data set folder", folder);
  std::sort(names.begin(), names.end());
  return names;
}

void add_class(const std::string& root, const std::string& name, ClassFiles& files) {
  const std::string folder = root + "/" + name;
  const auto label = static_cast<std::int32_t>(files.class_names.size());
  const std::size_t before = files.paths.size();
  for (const std::string& file : names_in(folder, false))
    if (is_image_name(file)) files.paths.push_back(folder + "/" + file);
  if (files.paths.size() == before)
    throw Error(ErrorKind::data, fmt::format("class folder {} has no .jpg, .jpeg or .png files", folder));
  files.labels.resize(files.paths.size(), label);
  files.class_names.push_back(name);
}

ClassFiles find_images(std::string root) {
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  ClassFiles files;
  for (const std::string& name : names_in(root, true)) add_class(root, name, files);
  if (files.class_names.empty()) {
    const bool empty = names_in(root, false).empty();
    throw Error(ErrorKind::data,
                fmt::format("data set folder {} {}", root, empty ? "is empty" : "has no class folders"),
                "images are expected as <class>/*.jpg, *.jpeg or *.png, one folder for each class");
  }
  return files;
}

}  // namespace

std::unique_ptr<DataSet> open_image_folder(const job::DataSetSpec& spec) {
  ClassFiles files = find_images(spec.path);
  DataSetFacts facts;
  facts.classes = static_cast<int>(files.class_names.size());
  facts.class_names = std::move(files.class_names);
  facts.labels = std::move(files.labels);
  facts.shape = shape_of_files(files.paths, spec);
  return make_image_file_set(std::move(facts), std::move(files.paths));
}

}  // namespace fleetrun::runtime
