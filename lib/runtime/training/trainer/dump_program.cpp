#include "runtime/training/trainer/dump_program.h"

#include <cctype>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"
#include "base/system/marked_file.h"
#include "runtime/graph/program_dot.h"
#include "runtime/graph/program_text.h"

namespace fleetrun::runtime {
namespace {

// What the files begin with, by which we recognise them as ours.
constexpr const char *kTextStart = "# written by fleetrun\n", *kPictureStart = "// written by fleetrun\n";
constexpr const char* kWayOut = "--dump_program and --dump_passes take another folder";

const char* start_of(const std::string& path) { return path.ends_with(".dot") ? kPictureStart : kTextStart; }

void write_own(const std::string& path, const std::string& text) {
  require_ours(path, {.text = start_of(path)}, kWayOut);
  write_file_atomically(path, start_of(path) + text);
}

void dump(const std::string& start, const Program& program) {
  write_own(start + ".txt", print_program(program, all_ops()));
  write_own(start + ".dot", program_dot(program));
}

void dump(const std::string& start, const Executor& executor) {
  dump(start, executor.program());
  write_own(start + ".kernels.txt", executor.describe_kernels());
}

bool is_own(const std::string& path) {
  try {
    require_ours(path, {.text = start_of(path)}, kWayOut);
    return true;
  } catch (const Error&) {
    return false;
  }
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
    if (is_of_a_pass(entry.path()) && is_own(entry.path())) earlier.push_back(entry.path());
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
