#include "runtime/predict/image_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/formats/image_file_set.h"

namespace fleetrun::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLines = "-";  // the word for them

bool is_folder(const std::string& path) {
  std::error_code problem;
  return fs::is_directory(path, problem);
}

struct FolderFiles {
  std::vector<std::string> images, others;
};

// `above`: the folders that lead there, without links. One of them may be linked from below.
void add_files_below(const fs::path& folder, std::vector<fs::path> above, FolderFiles& files) {
  std::error_code problem;
  const fs::path real = fs::canonical(folder, problem);
  if (std::ranges::find(above, real) != above.end()) return;
  above.push_back(real);
  std::vector<fs::path> folders;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.front() == '.') continue;
    if (entry->is_directory(ignored))
      folders.push_back(entry->path());
    else
      (is_image_name(name) ? files.images : files.others).push_back(entry->path().string());
  }
  if (problem) throw file_error(problem.value(), "reading folder", folder.string());
  for (const fs::path& below : folders) add_files_below(below, above, files);
}

void add_folder(const std::string& folder, ImagePaths& paths) {
  FolderFiles files;
  add_files_below(folder, {}, files);
  for (std::vector<std::string>* each : {&files.images, &files.others}) std::ranges::sort(*each);
  IgnoredFiles others;
  for (const std::string& other : files.others) others.add(other);
  if (files.images.empty())
    throw Error(ErrorKind::data,
                fmt::format("neither the folder {} nor a folder below it has {}", folder, kImageFiles),
                describe(others));
  paths.images.insert(paths.images.end(), files.images.begin(), files.images.end());
  for (std::string& other : files.others) paths.ignored.add(std::move(other));
}

}  // namespace

ImagePaths image_paths(const std::vector<std::string>& words, std::istream& lines) {
  ImagePaths paths;
  for (const std::string& word : words) {
    if (word == kLines) {
      for (std::string line; std::getline(lines, line);) {
        if (line.ends_with('\r')) line.pop_back();  // of a list that was written on Windows
        if (line.find('\0') != std::string::npos)
          throw Error(ErrorKind::data, "a path on stdin contains a NUL byte, wanted one path per line",
                      "find without -print0, or tr '\\0' '\\n', writes such lines");
        if (!line.empty()) paths.images.push_back(line);
      }
    } else if (is_folder(word)) {
      add_folder(word, paths);
    } else {
      paths.images.push_back(word);
    }
  }
  return paths;
}

bool is_single_image(const std::vector<std::string>& words) {
  return words.size() == 1 && words.front() != kLines && !is_folder(words.front());
}

}  // namespace fleetrun::runtime
