// The state of the CUDA that works on the host: memory, streams with their work, and recordings. Everything here is used with
// the mutex of the machine.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

// What one stream does in a recording.
struct RecordedItem {
  std::function<bool()> work;  // null: it waits
  std::size_t lane = 0;        // until this lane
  std::size_t number = 0;      // has done so many items
};

struct CUgraph_st {
  std::vector<std::vector<RecordedItem>>
      lanes;                                // by captured stream; the first is the one that it is launched in
  std::vector<std::shared_ptr<void>> kept;  // of libraries, for as long as the recording lives
};

namespace fleetrun::cuda::on_host {

// A recording under way.
struct Capture {
  CUgraph_st graph;
  std::vector<cudaStream_t> streams;  // by lane
  std::vector<std::vector<std::size_t>>
      seen;  // by lane: how many items of each lane have to be done before what it is given next
};

}  // namespace fleetrun::cuda::on_host

struct CUstream_st {
  std::deque<std::function<bool()>> work;
  std::shared_ptr<fleetrun::cuda::on_host::Capture> capture;  // while work is recorded and not done
  std::size_t lane = 0;                                       // of the capture
  std::size_t given = 0, done = 0;
  bool is_at_work = false;

  void push(std::function<bool()> more);
  void go_on();  // with one piece of work, as far as it goes now
  void go_on_until(std::size_t number) {
    while (done < number) go_on();
  }
};

struct CUevent_st {
  std::shared_ptr<CUstream_st> stream;  // null: never recorded, or in a capture
  std::size_t number = 0;
  std::shared_ptr<fleetrun::cuda::on_host::Capture> capture = nullptr;
  std::size_t lane = 0;
  std::vector<std::size_t> seen = {};  // as that of the lane
};

namespace fleetrun::cuda::on_host {

struct Piece {
  std::size_t bytes;
  bool of_device;
};

struct Machine {
  std::recursive_mutex mutex;
  std::map<cudaStream_t, std::shared_ptr<CUstream_st>> streams;
  std::map<const std::byte*, Piece> pieces;
  std::size_t taken = 0;

  void go_on() {
    for (const auto& [handle, stream] : streams) stream->go_on_until(stream->given);
  }
  // The piece with this address; end() when there is none.
  auto find(const void* data) {
    auto next = pieces.upper_bound(static_cast<const std::byte*>(data));
    if (next == pieces.begin()) return pieces.end();
    --next;
    return static_cast<const std::byte*>(data) < next->first + next->second.bytes ? next : pieces.end();
  }
};

Machine& cuda();

// The last error stays until somebody asks for it.
cudaError_t& last_error();
inline cudaError_t fail(cudaError_t error) { return last_error() = error; }

// Work that is done when the stream has done `number` pieces of work.
std::function<bool()> wait_for_mark(std::shared_ptr<CUstream_st> stream, std::size_t number);

CUevent_st mark_in_recording(const CUstream_st& stream);
// The stream joins the capture of the event, if it does not belong to it already.
cudaError_t wait_in_recording(cudaStream_t stream, const CUevent_st& event);

}  // namespace fleetrun::cuda::on_host
