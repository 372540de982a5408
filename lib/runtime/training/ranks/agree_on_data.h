// Checks that every host of a run has the same data, because each host may have it on its own disk.
#pragma once
#include <string>

#include "comm/make_communicator.h"
#include "comm/rendezvous/exchange.h"
#include "runtime/training/setup/data_sets.h"

namespace fleetrun::runtime {

// What the hosts compare: the number of samples, the classes and their names, the shape, every label, the name of every
// sample's file (without its folders), and the first MiB of the stored bytes of up to 32 evenly spread samples. A
// difference in the bytes of other samples goes unnoticed.
comm::Facts facts_of(const DataSets& data);

// A hash of these facts about one data set. Empty if one of the compared samples cannot be read: nobody knows what it will be next time.
std::string digest_of(const DataSet& set);

// Compares the facts of all nodes; with one node there is nothing to compare. Throws Error(protocol), with the same
// words on every rank, when two nodes differ. The error names the fact, the nodes and hosts, and both values.
void agree_on_data(const comm::World& world, const DataSets& data);

}  // namespace fleetrun::runtime
