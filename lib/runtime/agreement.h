// What ranks settle before they work together: one instruction set, one program.
#pragma once
#include <memory>
#include <string>

#include "comm/make_communicator.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

// The device that the launcher chose for this rank, held to what every rank's processor has.
// Throws Error(config) for a device that this build does not have.
std::unique_ptr<Device> make_agreed_device(const comm::World& world);

// Throws Error(protocol) on every rank when the ranks' programs (with layouts), versions or world sizes
// differ, saying what differs between whom.
void agree_on_program(const comm::World& world, const std::string& program_text);

}  // namespace fleetrun::runtime
