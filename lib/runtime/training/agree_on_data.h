// The check that every host of a run has the same data: each may have it on its own disk.
#pragma once
#include "comm/make_communicator.h"
#include "comm/rendezvous/exchange.h"
#include "runtime/training/data_sets.h"

namespace fleetrun::runtime {

// What the hosts compare of the sets: the number of samples, the classes and their names, the shape, every label, the name of
// every sample's file (without its folders), and the first MiB of the stored bytes of up to 32 samples, evenly spread. So data
// that differs in few other samples alone is not noticed.
comm::Facts facts_of(const DataSets& data);

// On several nodes. Throws Error(protocol) on every rank, with the same words, when two nodes have different facts:
// which one, on which nodes and hosts, and both values.
void agree_on_data(const comm::World& world, const DataSets& data);

}  // namespace fleetrun::runtime
