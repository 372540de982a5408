// CUDA graphs: streams that record what they are given. A stream joins the recording of another one when it waits for an event of that
// stream. The recording has to end in the stream in which it began, with all others waited for.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "cuda/on_host/machine.h"
#include "cuda/on_host/stream.h"

namespace on_host = fleetrun::cuda::on_host;

struct CUgraphExec_st : CUgraph_st {
  std::vector<std::shared_ptr<CUstream_st>> streams;  // of the lanes but the first
};

namespace {

// As an engine of cuDNN may do that cannot be recorded.
bool refuses_graphs() {
  const char* const text = std::getenv("FLEETRUN_ON_HOST_REFUSE_GRAPHS");
  return text != nullptr && std::string(text) == "1";
}

void join(cudaStream_t stream, const std::shared_ptr<on_host::Capture>& capture) {
  stream->capture = capture;
  stream->lane = capture->streams.size();
  capture->streams.push_back(stream);
  capture->graph.lanes.emplace_back();
  capture->seen.emplace_back();
}

// Items up to the last that is work: a wait at the end holds nobody back.
std::size_t items_with_work(const std::vector<RecordedItem>& items) {
  const auto last =
      std::find_if(items.rbegin(), items.rend(), [](const auto& item) { return item.work != nullptr; });
  return static_cast<std::size_t>(items.rend() - last);
}

bool all_are_waited_for(on_host::Capture& capture) {
  std::vector<std::size_t>& seen = capture.seen.front();
  seen.resize(capture.streams.size());
  for (std::size_t lane = 1; lane < seen.size(); ++lane)
    if (seen[lane] < items_with_work(capture.graph.lanes[lane])) return false;
  return true;
}

}  // namespace

namespace fleetrun::cuda::on_host {

CUevent_st mark_in_recording(const CUstream_st& stream) {
  const Capture& capture = *stream.capture;
  CUevent_st event = {.capture = stream.capture, .lane = stream.lane, .seen = capture.seen[stream.lane]};
  event.number = capture.graph.lanes[stream.lane].size();
  event.seen.resize(capture.streams.size());
  event.seen[stream.lane] = event.number;
  return event;
}

cudaError_t wait_in_recording(cudaStream_t stream, const CUevent_st& event) {
  if (!event.capture || event.capture->streams.empty())
    refuse("a recording waits for an event from outside, or the other way round");
  if (!stream->capture) join(stream, event.capture);
  if (stream->capture != event.capture) refuse("a stream takes part in two recordings");
  Capture& capture = *stream->capture;
  capture.graph.lanes[stream->lane].push_back({nullptr, event.lane, event.number});
  std::vector<std::size_t>& seen = capture.seen[stream->lane];
  seen.resize(capture.streams.size());
  for (std::size_t lane = 0; lane < event.seen.size(); ++lane)
    seen[lane] = std::max(seen[lane], event.seen[lane]);
  return cudaSuccess;
}

bool keep_in_recording(cudaStream_t stream, std::shared_ptr<void> kept) {
  const std::lock_guard lock(machine());
  if (!stream->capture) return false;
  stream->capture->graph.kept.push_back(std::move(kept));
  return true;
}

}  // namespace fleetrun::cuda::on_host

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(on_host::machine());
  if (stream->capture) return on_host::fail(cudaErrorIllegalState);
  join(stream, std::make_shared<on_host::Capture>());
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(on_host::machine());
  if (!stream->capture) return on_host::fail(cudaErrorIllegalState);
  if (stream->lane != 0) return on_host::fail(cudaErrorStreamCaptureUnmatched);
  const std::shared_ptr<on_host::Capture> capture = stream->capture;
  const bool is_whole = all_are_waited_for(*capture);
  for (const cudaStream_t each : std::exchange(capture->streams, {})) each->capture = nullptr;
  if (!is_whole) return on_host::fail(cudaErrorStreamCaptureUnjoined);
  if (refuses_graphs()) return on_host::fail(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(capture->graph)};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  const std::lock_guard lock(on_host::machine());
  *made = new CUgraphExec_st{*graph, {}};
  for (std::size_t lane = 1; lane < graph->lanes.size(); ++lane) {
    const auto stream = std::make_shared<CUstream_st>();
    on_host::cuda().streams[stream.get()] = stream;
    (*made)->streams.push_back(stream);
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
// What was launched is done nevertheless.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const std::lock_guard lock(on_host::machine());
  for (const auto& stream : graph->streams)
    if (stream->done == stream->given) on_host::cuda().streams.erase(stream.get());
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const std::lock_guard lock(on_host::machine());
  ++on_host::counts().graph_launches;
  std::vector<std::shared_ptr<CUstream_st>> streams = {on_host::cuda().streams.at(stream)};
  std::vector<std::size_t> given = {stream->given};
  for (const auto& each : graph->streams) {
    each->push(on_host::wait_for_mark(streams.front(), given.front()));
    streams.push_back(each);
    given.push_back(each->given);
  }
  for (std::size_t lane = 0; lane < streams.size(); ++lane)
    for (const RecordedItem& item : graph->lanes[lane])
      streams[lane]->push(
          item.work ? item.work : on_host::wait_for_mark(streams[item.lane], given[item.lane] + item.number));
  return cudaSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
