#include "comm/gloo/gloo_collectives.h"

#include <cstring>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>
#include <gloo/transport/unbound_buffer.h>
#include <gloo/types.h>

#include "comm/collective/reduce.h"

namespace fleetrun::comm {
namespace {

constexpr std::uint8_t kReduceScatterSlotPrefix = 0x71;  // Gloo's own collectives use 0x01 to 0x08

using ContextPtr = std::shared_ptr<gloo::Context>;

std::uint32_t tag_of(const GlooCall& call) { return static_cast<std::uint32_t>(call.number); }

// Gloo asks for a C++ type, but uses only its size.
template <typename Options>
void set_output(Options& options, BufferView buffer) {
  switch (size_of(buffer.dtype)) {
    case 1:
      return options.setOutput(buffer.as<std::uint8_t>(), buffer.count);
    case 2:
      return options.setOutput(buffer.as<std::uint16_t>(), buffer.count);
    case 4:
      return options.setOutput(buffer.as<std::uint32_t>(), buffer.count);
    default:
      return options.setOutput(buffer.as<std::uint64_t>(), buffer.count);
  }
}

// Each part of the buffer is summed once, in the order of the ring, and then passed on: equal bits
// everywhere.
void all_reduce(const ContextPtr& context, BufferView buffer, ReduceOp op, const GlooCall& call) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setTag(tag_of(call));
  options.setTimeout(call.deadline);
  options.setReduceFunction(reduce_function(buffer.dtype, op));
  set_output(options, buffer);
  gloo::allreduce(options);
}

// A ring in which each part is summed, then sent to the root.
void reduce(const ContextPtr& context, const Collective& collective, const GlooCall& call) {
  gloo::ReduceOptions options(context);
  options.setRoot(collective.root);
  options.setTag(tag_of(call));
  options.setTimeout(call.deadline);
  options.setReduceFunction(reduce_function(collective.buffer.dtype, collective.op));
  set_output(options, collective.buffer);
  gloo::reduce(options);
}

void broadcast(const ContextPtr& context, BufferView buffer, int root, const GlooCall& call) {
  gloo::BroadcastOptions options(context);
  options.setRoot(root);
  options.setTag(tag_of(call));
  options.setTimeout(call.deadline);
  set_output(options, buffer);
  gloo::broadcast(options);
}

void all_gather(const ContextPtr& context, BufferView mine, BufferView all, const GlooCall& call) {
  std::byte* own_slice = all.as<std::byte>() + static_cast<std::size_t>(context->rank) * mine.bytes();
  if (own_slice != mine.data) std::memcpy(own_slice, mine.data, mine.bytes());
  gloo::AllgatherOptions options(context);
  options.setTag(tag_of(call));
  options.setTimeout(call.deadline);
  set_output(options, all);
  gloo::allgather(options);
}

void barrier(const ContextPtr& context, const GlooCall& call) {
  gloo::BarrierOptions options(context);
  options.setTag(tag_of(call));
  options.setTimeout(call.deadline);
  gloo::barrier(options);
}

// Gloo has none in the new style. A ring: slice s starts at rank s+1, goes once round, grows by each rank's
// own and ends at rank s. Sent per rank: bytes * (size - 1) / size.
void reduce_scatter(const ContextPtr& context, const Collective& collective, const GlooCall& call,
                    std::vector<std::byte>& scratch) {
  const int size = context->size;
  const int rank = context->rank;
  const BufferView mine = collective.mine;
  const auto slice = [&](int index) {
    return static_cast<std::size_t>((index + 2 * size) % size) * mine.bytes();
  };
  const ReduceFunction reduce = reduce_function(mine.dtype, collective.op);
  if (scratch.size() < mine.bytes()) scratch.resize(mine.bytes());

  auto* all = collective.buffer.as<std::byte>();
  const auto sending = context->createUnboundBuffer(all, collective.buffer.bytes());
  const auto receiving = context->createUnboundBuffer(scratch.data(), mine.bytes());
  const auto slot = gloo::Slot::build(kReduceScatterSlotPrefix, tag_of(call));
  for (int step = 0; step < size - 1; ++step) {
    receiving->recv((rank - 1 + size) % size, slot, 0, mine.bytes());
    sending->send((rank + 1) % size, slot, slice(rank - step - 1), mine.bytes());
    receiving->waitRecv(call.deadline);
    std::byte* grown = all + slice(rank - step - 2);
    reduce(grown, scratch.data(), grown, mine.count);
    sending->waitSend(call.deadline);
  }
  if (mine.data != all + slice(rank)) std::memcpy(mine.data, all + slice(rank), mine.bytes());
}

}  // namespace

void run_on_gloo(const ContextPtr& context, const Collective& collective, const GlooCall& call,
                 std::vector<std::byte>& scratch) {
  const bool nothing_to_move = collective.kind != Collective::Kind::barrier && collective.buffer.count == 0;
  if (nothing_to_move) return;
  switch (collective.kind) {
    case Collective::Kind::all_reduce:
      return all_reduce(context, collective.buffer, collective.op, call);
    case Collective::Kind::reduce:
      return reduce(context, collective, call);
    case Collective::Kind::broadcast:
      return broadcast(context, collective.buffer, collective.root, call);
    case Collective::Kind::reduce_scatter:
      return reduce_scatter(context, collective, call, scratch);
    case Collective::Kind::all_gather:
      return all_gather(context, collective.mine, collective.buffer, call);
    case Collective::Kind::barrier:
      return barrier(context, call);
  }
}

}  // namespace fleetrun::comm
