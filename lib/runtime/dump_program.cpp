#include "runtime/dump_program.h"

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

}  // namespace

void dump_programs(const std::string& folder, const Trainer& trainer) {
  make_directories(folder);
  dump(folder + "/train", trainer.executor());
  dump(folder + "/eval", trainer.evaluation_executor());
}

PassWatcher dump_passes(const std::string& folder) {
  make_directories(folder);
  return [folder, number = 0](const std::string& pass, const Program& program) mutable {
    dump(fmt::format("{}/{:02}-{}", folder, number++, pass), program);
  };
}

}  // namespace fleetrun::runtime
