#include "runtime/agreement.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <dnnl.hpp>

#include "base/error.h"
#include "runtime/kernels/cpu/instruction_set.h"

namespace fleetrun::runtime {
namespace {

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

comm::Deadline join_deadline() { return comm::Deadline(comm::kJoinDeadline); }

}  // namespace

std::unique_ptr<Device> make_agreed_device(const comm::World& world) {
  if (world.env.device != "cpu")
    throw Error(ErrorKind::config, fmt::format("device {} is not supported by this build", world.env.device),
                "choose --device=cpu");
  unsigned common = instruction_sets();
  if (world.env.world_size > 1)
    for (const std::string& theirs :
         comm::exchange(world.party(), "instruction sets", std::to_string(common), join_deadline()))
      common &= static_cast<unsigned>(std::stoul(theirs));
  limit_instruction_sets(common);
  return make_cpu_device();
}

void agree_on_program(const comm::World& world, const std::string& program_text) {
  if (world.env.world_size == 1) return;
  comm::agree(world.party(), "program",
              {{"fleetrun version", FLEETRUN_VERSION},
               {"oneDNN version", onednn_version()},
               {"world size", std::to_string(world.env.world_size)},
               {"program", fmt::format("{:016x}", XXH3_64bits(program_text.data(), program_text.size()))}},
              join_deadline());
}

}  // namespace fleetrun::runtime
