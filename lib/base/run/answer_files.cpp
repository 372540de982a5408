#include "base/run/answer_files.h"

#include <fmt/format.h>

#include "base/system/file.h"
#include "base/system/marked_file.h"

namespace fleetrun {

std::string AnswerFile::path_in(const std::string& folder) const {
  return fmt::format("{}/{}", folder, name);
}

void require_own_answer(const AnswerFile& file, const std::string& folder) {
  require_ours(file.path_in(folder), {.text = file.mark}, "choose another folder with --log_dir");
}

void write_answer(const AnswerFile& file, const std::string& folder, std::string_view content) {
  require_own_answer(file, folder);
  write_file_atomically(file.path_in(folder), content);
}

}  // namespace fleetrun
