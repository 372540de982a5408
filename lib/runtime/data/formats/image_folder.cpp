#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "base/text/utf8.h"
#include "runtime/data/formats/formats.h"
#include "runtime/data/formats/image_file_set.h"

namespace fleetrun::runtime {
namespace {

namespace fs = std::filesystem;

struct ClassFiles {
  std::vector<std::string> class_names;
  IgnoredFiles ignored;
  std::vector<std::string> paths;
  std::vector<std::int32_t> labels;
};

// The names in a folder that `is_wanted` wants, hidden ones left out, in byte order.
template <typename IsWanted>
std::vector<std::string> names_in(const std::string& folder, const IsWanted& is_wanted) {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entries(folder, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    std::string name = entries->path().filename().string();
    if (name.front() != '.' && is_wanted(*entries)) names.push_back(std::move(name));
  }
  if (problem) throw file_error(problem.value(), "reading data set folder", folder);
  std::sort(names.begin(), names.end());
  return names;
}

// A missing class would shift the labels of the classes after it. So we must find everything that may be a class.
bool is_class_folder(const fs::directory_entry& entry) {
  std::error_code problem;
  const bool is_folder = entry.is_directory(problem);
  if (!problem) return is_folder;
  const std::string path = entry.path().string();
  if (problem == std::errc::too_many_symbolic_link_levels)
    throw Error(ErrorKind::missing,
                fmt::format("class folder {}: {}", path, describe_errno(problem.value())));
  throw file_error(problem.value(), "looking for class folder", path);
}

// Counts what we cannot examine as a file; reading it reports the error.
bool is_file(const fs::directory_entry& entry) {
  std::error_code ignored;
  return !entry.is_directory(ignored);
}

bool is_folder(const fs::directory_entry& entry) { return !is_file(entry); }

// The names of the classes go into the metadata of model files, which are UTF-8.
void require_utf8(const std::string& root, const std::vector<std::string>& folders) {
  const auto other = std::ranges::find_if_not(folders, is_utf8);
  if (other == folders.end()) return;
  throw Error(ErrorKind::data,
              fmt::format("class folder {}/{} has a name that is not UTF-8", root, printable(*other)),
              "rename the folder; each \xEF\xBF\xBD stands for a byte that is not UTF-8");
}

// The images of the folder `root`/`class_name`. False: there are none.
bool add_images(const std::string& root, const std::string& class_name, std::int32_t label,
                ClassFiles& files) {
  const std::size_t before = files.paths.size();
  const std::string folder = root + "/" + class_name;
  for (const std::string& file : names_in(folder, is_file)) {
    if (is_image_name(file))
      files.paths.push_back(folder + "/" + file);
    else
      files.ignored.add(class_name + "/" + file);
  }
  for (const std::string& name : names_in(folder, is_folder))
    files.ignored.add(class_name + "/" + name + "/");
  files.labels.resize(files.paths.size(), label);
  return files.paths.size() > before;
}

// The folders that are there are the classes.
void find_classes(const std::string& root, const std::vector<std::string>& folders, ClassFiles& files) {
  files.class_names = folders;
  for (std::size_t label = 0; label < folders.size(); ++label)
    if (!add_images(root, folders[label], static_cast<std::int32_t>(label), files))
      throw Error(ErrorKind::data,
                  fmt::format("class folder {}/{} has no {}", root, folders[label], kImageFiles));
}

std::string name_some(const std::vector<std::string>& classes) {
  constexpr std::size_t kMost = 10;
  const auto end = classes.begin() + static_cast<std::ptrdiff_t>(std::min(classes.size(), kMost));
  return fmt::format("{}{}", fmt::join(classes.begin(), end, ", "), end == classes.end() ? "" : ", ...");
}

// The classes are known, and some may have no images here.
void find_known_classes(const std::string& root, const std::vector<std::string>& folders, ClassFiles& files) {
  for (const std::string& name : folders) {
    const auto known = std::find(files.class_names.begin(), files.class_names.end(), name);
    if (known == files.class_names.end())
      throw Error(
          ErrorKind::data,
          fmt::format("class folder {}/{}: the training data has no class {}", root, name, name),
          "the folders must be named as the classes of the training data: " + name_some(files.class_names));
    add_images(root, name, static_cast<std::int32_t>(known - files.class_names.begin()), files);
  }
  if (files.paths.empty())
    throw Error(ErrorKind::data, fmt::format("none of the class folders in {} has {}", root, kImageFiles));
}

ClassFiles find_images(std::string root, const std::vector<std::string>& known) {
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  const std::vector<std::string> folders = names_in(root, is_class_folder);
  if (folders.empty()) {
    const bool empty = names_in(root, is_file).empty();
    throw Error(ErrorKind::data,
                fmt::format("data set folder {} {}", root, empty ? "is empty" : "has no class folders"),
                fmt::format("wanted a folder for each class, with {}", kImageFiles));
  }
  require_utf8(root, folders);
  ClassFiles files = {.class_names = known};
  for (std::string& name : names_in(root, is_file)) files.ignored.add(std::move(name));
  if (known.empty())
    find_classes(root, folders, files);
  else
    find_known_classes(root, folders, files);
  return files;
}

}  // namespace

std::unique_ptr<DataSet> open_image_folder(const job::DataSetSpec& spec,
                                           const std::vector<std::string>& known) {
  ClassFiles files = find_images(spec.path, known);
  DataSetFacts facts;
  facts.classes = static_cast<int>(files.class_names.size());
  facts.class_names = std::move(files.class_names);
  facts.ignored = std::move(files.ignored);
  facts.labels = std::move(files.labels);
  find_shape(files.paths, spec, facts);
  return make_image_file_set(std::move(facts), std::move(files.paths));
}

}  // namespace fleetrun::runtime
