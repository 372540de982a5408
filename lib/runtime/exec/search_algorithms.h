// By which algorithm each op is done that its device can do by several (convolutions on the CPU: direct, Winograd or a product
// of matrices): timed once for each distinct problem, by rank 0, and remembered on its host. The choice is the op's attribute.
//
//   conv2d x=a w=v -> y=b {groups=1,...}    =>    conv2d x=a w=v -> y=b {algorithm="winograd",groups=1,...}
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "comm/collective/communicator.h"
#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

// The seconds of one run of an op by an algorithm: by the clock, but for tests.
using Stopwatch = std::function<double(const std::string& algorithm, const std::function<void()>& run)>;

struct SearchOptions {
  bool search = true;             // false: the usual algorithm everywhere, and no attribute
  std::size_t scratch_limit = 0;  // bytes that one op may ask for besides its values
  int team = 1;                   // compute threads of an op
  Stopwatch stopwatch = nullptr;  // null: the clock
  // Of timed runs; then the usual algorithms do until the next start. The other ranks wait for rank 0, though not for ever.
  double patience_seconds = 120;
};

// What came of it, on rank 0; the others know only the choices.
struct AlgorithmSearch {
  int searched = 0;                   // distinct problems that nobody had searched before
  int hits = 0;                       // ... whose algorithm was known on this host
  int left = 0;                       // ... that there was no time for
  int problems = 0;                   // all of these
  int winograd = 0, gemm = 0;         // problems that are done by these
  std::vector<std::string> warnings;  // about the file, a line each
};

// All that timings on this host depend on besides the work: its name, the device, and the device's libraries.
std::string place_of(const Device& device);

// Every rank calls it, before layouts are decided: where the device has choices, rank 0's become everybody's.
// Throws Error(config) for an op that has no algorithm within the limit.
AlgorithmSearch search_algorithms(const std::vector<Program*>& programs, const OpTable& ops, Device& device,
                                  comm::Communicator& communicator, const SearchOptions& options);

// "convolutions: #searched=57, #cache hits=0, 12 of 57 problems by Winograd, 0 by gemm"; empty without any problem.
// Ends with ", 7 left to the next start" when the search took too long.
std::string describe(const AlgorithmSearch& search);

}  // namespace fleetrun::runtime
