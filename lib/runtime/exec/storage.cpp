#include "runtime/exec/storage.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <xxhash.h>

#include "base/error/error.h"
#include "base/number/half.h"
#include "runtime/exec/memory_plan.h"
#include "runtime/graph/owner_of.h"
#include "runtime/tensor/philox.h"

namespace fleetrun::runtime {
namespace {

// FNV-1a, 64 bit: a name as a number that is equal on every machine.
std::uint64_t number_of(const std::string& name) {
  constexpr std::uint64_t kOffset = 14695981039346656037U, kPrime = 1099511628211U;
  std::uint64_t hash = kOffset;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return hash;
}

// One number of Init's distribution with value 1, from 64 random bits.
double draw(Init::How how, std::uint32_t first, std::uint32_t second) {
  if (how == Init::How::uniform) return 2.0 * unit_float(first) - 1.0;
  // Box and Muller 1958; 1 - u lies in (0, 1], where the logarithm is finite.
  return std::sqrt(-2.0 * std::log(1.0 - unit_float(first))) *
         std::cos(2.0 * std::numbers::pi * unit_float(second));
}

std::vector<float> initial_values(const Value& value, std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(count_of(value.shape));
  if (value.init.how == Init::How::constant)
    return std::vector<float>(count, static_cast<float>(value.init.value));
  std::vector<float> values(count);
  const std::uint64_t stream = number_of(value.name);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = philox(seed, stream, i / 2);
    values[i] =
        static_cast<float>(draw(value.init.how, bits[i % 2 * 2], bits[i % 2 * 2 + 1]) * value.init.value);
  }
  return values;
}

bool is_kept(const Value& value) {
  return value.kind == ValueKind::parameter || value.kind == ValueKind::state;
}

// Those that are wanted, as they lie: what is contiguous first.
template <typename Wanted>
std::vector<const Value*> in_order_of_memory(const Program& program, Wanted&& wanted) {
  std::vector<const Value*> order;
  std::vector<bool> placed(program.values.size(), false);
  const auto place = [&](ValueId id) {
    if (placed[static_cast<std::size_t>(id)] || !wanted(program.value(id))) return;
    placed[static_cast<std::size_t>(id)] = true;
    order.push_back(&program.value(id));
  };
  for (const std::vector<ValueId>& ids : program.contiguous)
    for (const ValueId id : ids) place(id);
  for (ValueId id = 0; id < static_cast<ValueId>(program.values.size()); ++id) place(id);
  return order;
}

// The bytes from one gradient to the next.
std::size_t gradient_room(const Value& value, const Program& program, const Device& device) {
  const bool together =
      std::any_of(program.contiguous.begin(), program.contiguous.end(),
                  [&](const auto& ids) { return program.value(ids.front()).kind == ValueKind::gradient; });
  return aligned(value.bytes(), together ? device.gradient_alignment() : kArenaAlignment);
}

}  // namespace

Storage::Storage(const Program& program, Device& device, comm::Communicator& communicator) : device_(device) {
  place_kept(program);
  place_gradients(program, communicator);
}

void Storage::place_kept(const Program& program) {
  std::vector<const Value*> kept, owned;
  for (const Value* value : in_order_of_memory(program, is_kept)) {
    const bool alone = owner_of_user(program, program.find(value->name)) != kNone;
    (alone ? owned : kept).push_back(value);
    (alone ? owned_bytes_ : kept_bytes_) += aligned(value->bytes());
  }
  kept_ = place(kept);
  owned_ = place(owned);
}

std::unique_ptr<comm::Memory> Storage::place(const std::vector<const Value*>& values) {
  std::size_t bytes = 0;
  for (const Value* value : values) bytes += aligned(value->bytes());
  auto memory = device_.allocate(bytes);
  auto* next = static_cast<std::byte*>(memory->data());
  for (const Value* value : values) {
    pieces_[value->name] = {*value, next};
    next += aligned(value->bytes());
  }
  return memory;
}

void Storage::place_gradients(const Program& program, comm::Communicator& communicator) {
  const std::vector<const Value*> order =
      in_order_of_memory(program, [](const Value& value) { return value.kind == ValueKind::gradient; });
  std::map<DType, std::size_t> bytes;
  for (const Value* value : order) bytes[value->dtype] += gradient_room(*value, program, device_);
  std::map<DType, std::byte*> next;
  for (const auto& [dtype, size] : bytes) {
    gradients_.push_back(communicator.allocate(size));
    next[dtype] = static_cast<std::byte*>(gradients_.back()->data());
    gradient_bytes_ += size;
  }
  for (const Value* value : order) {
    pieces_[value->name] = {*value, next[value->dtype]};
    next[value->dtype] += gradient_room(*value, program, device_);
  }
}

const Storage::Piece& Storage::piece(const std::string& name) const {
  const auto found = pieces_.find(name);
  if (found == pieces_.end())
    throw Error(ErrorKind::internal,
                fmt::format("{} is not a parameter, state or gradient of the training program", name));
  return found->second;
}

void* Storage::data(const std::string& name) const { return piece(name).data; }

void Storage::initialise(std::uint64_t seed) {
  for (const auto& [name, piece] : pieces_)
    if (is_kept(piece.value))
      device_.from_plain(piece.value, initial_values(piece.value, seed).data(), piece.data);
}

void Storage::broadcast(comm::Communicator& communicator, int root) {
  if (kept_bytes_ == 0) return;
  communicator.broadcast({kept_->data(), kept_bytes_ / size_of(DType::f32), DType::f32}, root);
  if (device_.streams() != nullptr)
    communicator.barrier();  // the broadcast may only have been given to a stream
}

std::uint64_t Storage::fingerprint() const {
  std::vector<std::string> parameters;
  for (const auto& [name, piece] : pieces_)
    if (piece.value.kind == ValueKind::parameter) parameters.push_back(name);
  return fingerprint_of(parameters);
}

// Each tensor's hash starts from that of those before it.
std::uint64_t Storage::fingerprint_of(const std::vector<std::string>& names) const {
  Streams* streams = device_.streams();
  std::vector<std::byte> copy;
  std::uint64_t hash = 0;
  for (const std::string& name : names) {
    const Piece& found = piece(name);
    const std::size_t bytes = found.value.bytes();
    const void* data = found.data;
    if (streams != nullptr) {
      copy.resize(std::max(copy.size(), bytes));
      streams->download(found.data, copy.data(), bytes);
      data = copy.data();
    }
    hash = XXH3_64bits_withSeed(data, bytes, hash);
  }
  return hash;
}

std::vector<float> Storage::read(const std::string& name) const {
  const Piece& found = piece(name);
  std::vector<float> plain(static_cast<std::size_t>(count_of(found.value.shape)));
  if (found.value.dtype == DType::bf16) {
    std::vector<std::uint16_t> bits(plain.size());
    device_.to_plain(found.value, found.data, bits.data());
    std::transform(bits.begin(), bits.end(), plain.begin(), bf16_to_f32);
  } else {
    device_.to_plain(found.value, found.data, plain.data());
  }
  return plain;
}

void Storage::write(const std::string& name, const std::vector<float>& plain) {
  const Piece& found = piece(name);
  const auto wanted = static_cast<std::size_t>(count_of(found.value.shape));
  if (plain.size() != wanted)
    throw Error(ErrorKind::internal,
                fmt::format("{} was given {} elements, wanted {}", name, plain.size(), wanted));
  device_.from_plain(found.value, plain.data(), found.data);
}

}  // namespace fleetrun::runtime
