// The image files that a command line names.
#pragma once
#include <istream>
#include <string>
#include <vector>

#include "runtime/data/formats/ignored_files.h"

namespace fleetrun::runtime {

struct ImagePaths {
  std::vector<std::string> images;
  IgnoredFiles ignored;  // in folders
};

// In the order of the words: a file is itself, a folder stands for the images in it and below it in byte order, linked folders included and
// hidden ones left out, and "-" for the lines of `lines`. Files are not looked at. Throws Error(data) for a folder without images, Error(missing|permission|io)
// for one that cannot be read.
ImagePaths image_paths(const std::vector<std::string>& words, std::istream& lines);

// Whether the words name one file, and no folder or list of files.
bool is_single_image(const std::vector<std::string>& words);

}  // namespace fleetrun::runtime
