#include "runtime/agreement.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "base/error.h"
#include "runtime/kernels/cpu/instruction_set.h"
#include "runtime/load_plugin.h"

namespace fleetrun::runtime {
namespace {

comm::Deadline join_deadline() { return comm::Deadline(comm::kJoinDeadline); }

}  // namespace

std::unique_ptr<Device> make_agreed_device(const comm::World& world, const job::StrategySpec& strategy) {
  const std::string& device = world.env.device;
  if (device != "cpu") {
    const PluginOptions options = plugin_options(device, strategy, Environment::of_this_process());
    return with_context("preparing device " + device,
                        [&] { return load_plugin(cuda_plugin_path()).make_device(options); });
  }
  unsigned common = instruction_sets();
  if (world.env.world_size > 1)
    for (const std::string& theirs :
         comm::exchange(world.party(), "instruction sets", std::to_string(common), join_deadline()))
      common &= static_cast<unsigned>(std::stoul(theirs));
  limit_instruction_sets(common);
  return make_cpu_device();
}

void agree_on_program(const comm::World& world, const Device& device, const std::string& program_text) {
  if (world.env.world_size == 1) return;
  comm::agree(world.party(), "program",
              {{"fleetrun version", FLEETRUN_VERSION},
               {"device", device.name()},
               {"libraries", device.version()},
               {"world size", std::to_string(world.env.world_size)},
               {"program", fmt::format("{:016x}", XXH3_64bits(program_text.data(), program_text.size()))}},
              join_deadline());
}

}  // namespace fleetrun::runtime
