#include "runtime/training/ranks/agreement.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/run/version.h"
#include "runtime/kernels/cpu/loops/instruction_set.h"
#include "runtime/kernels/load_plugin.h"

namespace fleetrun::runtime {
namespace {

comm::Deadline join_deadline() { return comm::Deadline(comm::kJoinDeadline); }

// As much of a program as fits in a value of the store: only ranks that differ send it.
comm::Facts first_lines(const std::string& program_text) {
  constexpr std::size_t kMostBytes = 256 << 10;
  comm::Facts lines;
  std::istringstream text(program_text.substr(0, kMostBytes));
  for (std::string line; std::getline(text, line);)
    lines.emplace_back(fmt::format("program line {}", lines.size() + 1), line);
  return lines;
}

// Layouts and roundings depend on them.
void agree_on_instruction_sets(const comm::World& world) {
  const std::vector<std::string> processors =
      comm::exchange(world.party(), "processors", processor_features(), join_deadline());
  if (std::all_of(processors.begin(), processors.end(),
                  [&](const std::string& each) { return each == processors[0]; }))
    return;
  unsigned common = instruction_sets_of_child();
  for (const std::string& theirs :
       comm::exchange(world.party(), "instruction sets", std::to_string(common), join_deadline()))
    common &= static_cast<unsigned>(std::stoul(theirs));
  const std::string name = limit_instruction_sets(common);
  if (world.env.rank == 0)
    log_line("rank 0",
             fmt::format("the processors of the ranks differ; all ranks use the instructions of {}", name));
}

}  // namespace

std::unique_ptr<Device> make_agreed_device(const comm::World& world, const job::StrategySpec& strategy) {
  const std::string& device = world.env.device;
  if (device != "cpu") {
    const PluginOptions options = plugin_options(device, strategy, Environment::of_this_process());
    return with_context("preparing device " + device,
                        [&] { return load_plugin(cuda_plugin_path()).make_device(options); });
  }
  if (world.env.world_size > 1) agree_on_instruction_sets(world);
  return make_cpu_device();
}

void agree_on_program(const comm::World& world, const Device& device, const std::string& program_text) {
  if (world.env.world_size == 1) return;
  comm::agree(world.party(), "versions",
              {{"fleetrun version", own_version()},
               {"device", device.name()},
               {"libraries", device.version()},
               {"memory of gradients", device.memory_of_gradients()},
               {"world size", std::to_string(world.env.world_size)}},
              join_deadline());
  const std::string hash = fmt::format("{:016x}", XXH3_64bits(program_text.data(), program_text.size()));
  const auto hashes = comm::exchange(world.party(), "program hash", hash, join_deadline());
  if (std::all_of(hashes.begin(), hashes.end(), [&](const std::string& each) { return each == hashes[0]; }))
    return;
  comm::agree(world.party(), "program lines", first_lines(program_text), join_deadline());
  comm::agree(world.party(), "program", {{"program", hash}}, join_deadline());  // the difference comes later
}

}  // namespace fleetrun::runtime
