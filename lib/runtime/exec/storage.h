// The memories that outlive a step: parameters with their states, and gradients. Programs that share
// parameters (training and evaluation) share one Storage.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/collective/communicator.h"
#include "runtime/graph/program.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

class Storage {
 public:
  // For a program whose layouts are decided. Gradients of one dtype lie in one buffer of the communicator.
  Storage(const Program& program, Device& device, comm::Communicator& communicator);

  // Memory of a parameter, state or gradient by its name. Throws Error(internal) for any other name.
  void* data(const std::string& name) const;

  bool has(const std::string& name) const { return pieces_.count(name) > 0; }

  // Parameters and states as their Init says, by (seed, name): equal on all ranks, whatever their layout.
  void initialise(std::uint64_t seed);

  // Parameters and states of `root` copied to everybody, but for those that one rank keeps alone (owner_of_user).
  void broadcast(comm::Communicator& communicator, int root);

  // Of all parameters as they lie in memory: equal on ranks whose parameters are equal bit for bit.
  std::uint64_t fingerprint() const;
  // The same of the parameters or states of these names.
  std::uint64_t fingerprint_of(const std::vector<std::string>& names) const;

  // A parameter or state as plain f32, row-major.
  std::vector<float> read(const std::string& name) const;

  // The reverse. Throws Error(internal) when `plain` has another number of elements.
  void write(const std::string& name, const std::vector<float>& plain);

  std::size_t parameter_bytes() const { return kept_bytes_ + owned_bytes_; }  // states included
  std::size_t gradient_bytes() const { return gradient_bytes_; }

 private:
  struct Piece {
    Value value;
    void* data = nullptr;
  };

  void place_kept(const Program& program);
  std::unique_ptr<comm::Memory> place(const std::vector<const Value*>& values);
  void place_gradients(const Program& program, comm::Communicator& communicator);
  const Piece& piece(const std::string& name) const;

  Device& device_;
  std::map<std::string, Piece> pieces_;
  std::unique_ptr<comm::Memory> kept_, owned_;  // what every rank has, and what is this rank's alone
  std::size_t kept_bytes_ = 0, owned_bytes_ = 0;
  std::vector<std::unique_ptr<comm::Memory>> gradients_;
  std::size_t gradient_bytes_ = 0;
};

}  // namespace fleetrun::runtime
