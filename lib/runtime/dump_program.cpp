#include "runtime/dump_program.h"

#include "base/file.h"
#include "runtime/graph/program_dot.h"
#include "runtime/graph/program_text.h"

namespace fleetrun::runtime {
namespace {

void dump(const std::string& start, const Executor& executor) {
  write_file_atomically(start + ".txt", print_program(executor.program(), all_ops()));
  write_file_atomically(start + ".dot", program_dot(executor.program()));
  write_file_atomically(start + ".kernels.txt", executor.describe_kernels());
}

}  // namespace

void dump_programs(const std::string& folder, const Trainer& trainer) {
  make_directories(folder);
  dump(folder + "/train", trainer.executor());
  dump(folder + "/eval", trainer.evaluation_executor());
}

}  // namespace fleetrun::runtime
