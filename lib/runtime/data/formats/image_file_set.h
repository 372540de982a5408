// Data sets whose samples are image files of their own.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime {

constexpr std::string_view kImageFiles = ".jpg, .jpeg, .jpe, .jfif, .png, .webp or .bmp files";
// Whether the name ends like these, in small or capital letters.
bool is_image_name(const std::string& name);

// Sets `shape` to the job's image_size; without it to the size that all files share by their headers, or to 224 when they differ, which
// `unlike` shows then.
void find_shape(const std::vector<std::string>& paths, const job::DataSetSpec& spec, DataSetFacts& facts);

// `names`: what describe() calls the files; empty: their paths.
std::unique_ptr<DataSet> make_image_file_set(DataSetFacts facts, std::vector<std::string> paths,
                                             std::vector<std::string> names = {});

}  // namespace fleetrun::runtime
