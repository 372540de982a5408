// Gloo alone: its all-reduce of f32 sums between processes that find each other in a folder.
//   gloo_all_reduce RANK RANKS BYTES ROUNDS ADDRESS FOLDER ring|bcube
// ADDRESS is that of the interface to use. Rank 0 prints "MEDIAN P90 MIN" in microseconds.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

int main(int, char** argv) {
  using Clock = std::chrono::steady_clock;
  const int rank = std::atoi(argv[1]), ranks = std::atoi(argv[2]), rounds = std::atoi(argv[4]);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = argv[5];
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(argv[6]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);

  std::vector<float> data(std::strtoull(argv[3], nullptr, 10) / sizeof(float));
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(std::string(argv[7]) == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                                       : gloo::AllreduceOptions::Algorithm::RING);
  void (*sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<float>;
  options.setReduceFunction(sum);
  options.setOutput(data.data(), data.size());
  gloo::BarrierOptions barrier(context);
  std::vector<double> times;
  for (int round = -20; round < rounds; ++round) {
    barrier.setTag(static_cast<std::uint32_t>(2 * (round + 20)));
    gloo::barrier(barrier);
    options.setTag(static_cast<std::uint32_t>(2 * (round + 20) + 1));
    const auto start = Clock::now();
    gloo::allreduce(options);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (round >= 0) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  if (rank == 0)
    std::printf("%.3f %.3f %.3f\n", times[times.size() / 2], times[times.size() * 9 / 10], times[0]);
  barrier.setTag(1U << 20U);
  gloo::barrier(barrier);  // nobody closes before all are done
}
