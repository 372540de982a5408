// The feeds of a program on a device that cannot read the host's memory: each has two places there, filled in turns
// through staging memory on the copy stream, so that a batch travels while the step before it is at work. After
// construction nothing is allocated.
#pragma once
#include <array>
#include <map>
#include <memory>

#include "runtime/graph/program.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

class Feeds {
 public:
  // `device` has streams.
  Feeds(const Program& program, Device& device);

  // Copies the feed from plain host memory, which may be used for something else at once, and returns where it lies
  // on the device for the runs until the next put. What the compute stream is given from now on finds it there.
  void* put(ValueId id, const void* host);

  // To be called after each run: the places that it has read may be filled again.
  void release();

 private:
  struct Place {
    std::unique_ptr<comm::Memory> staging, memory;
    std::unique_ptr<Event> filled, read;
  };
  struct Feed {
    std::size_t bytes = 0;
    std::array<Place, 2> places;
    std::size_t current = 0;
  };

  Streams& streams_;
  std::map<ValueId, Feed> feeds_;
};

}  // namespace fleetrun::runtime
