// What the ranks agree on before they work together: one instruction set, one program.
#pragma once
#include <memory>
#include <string>

#include "comm/make_communicator.h"
#include "job/spec/job_spec.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

// The device that the launcher chose for this rank: the CPU, limited to instructions that every rank's processor has,
// or CUDA from its plug-in. Throws Error(config) for a device that this installation does not have.
std::unique_ptr<Device> make_agreed_device(const comm::World& world, const job::StrategySpec& strategy = {});

// Throws Error(protocol) on every rank when the ranks' programs (with layouts), devices, versions or world sizes
// differ. The error says what differs, and between which ranks.
void agree_on_program(const comm::World& world, const Device& device, const std::string& program_text);

}  // namespace fleetrun::runtime
