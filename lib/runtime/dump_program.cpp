#include "runtime/dump_program.h"

#include <cctype>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "runtime/graph/program_dot.h"
#include "runtime/graph/program_text.h"

namespace fleetrun::runtime {
namespace {

void dump(const std::string& start, const Program& program) {
  write_file_atomically(start + ".txt", print_program(program, all_ops()));
  write_file_atomically(start + ".dot", program_dot(program));
}

void dump(const std::string& start, const Executor& executor) {
  dump(start, executor.program());
  write_file_atomically(start + ".kernels.txt", executor.describe_kernels());
}

// "07-fuse_bn_act.txt": an earlier run may have had more passes.
bool is_of_a_pass(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  return (file.extension() == ".txt" || file.extension() == ".dot") && stem.size() > 3 &&
         std::isdigit(static_cast<unsigned char>(stem[0])) != 0 &&
         std::isdigit(static_cast<unsigned char>(stem[1])) != 0 && stem[2] == '-' &&
         is_named_by_passes(stem.substr(3));
}

void remove_earlier_passes(const std::string& folder) {
  std::vector<std::filesystem::path> earlier;
  std::error_code ignored;  // what cannot be removed is written over, or stays
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (is_of_a_pass(entry.path())) earlier.push_back(entry.path());
  for (const std::filesystem::path& path : earlier) std::filesystem::remove(path, ignored);
}

}  // namespace

void dump_programs(const std::string& folder, const Trainer& trainer) {
  make_directories(folder);
  dump(folder + "/train", trainer.executor());
  dump(folder + "/eval", trainer.evaluation_executor());
}

PassWatcher dump_passes(const std::string& folder) {
  make_directories(folder);
  remove_earlier_passes(folder);
  return [folder, number = 0](const std::string& pass, const Program& program) mutable {
    dump(fmt::format("{}/{:02}-{}", folder, number++, pass), program);
  };
}

}  // namespace fleetrun::runtime
