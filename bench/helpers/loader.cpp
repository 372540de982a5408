// bench_loader LIST: images/s of the loader with one thread, random_resized_crop to 224, over the files of a list `path label`, in
// the last of the passes that it takes to reach its speed (steady.h).
#include <chrono>
#include <cstdio>
#include <exception>
#include <vector>

#include "runtime/data/loader.h"
#include "steady.h"

namespace {

using namespace fleetrun;
using Clock = std::chrono::steady_clock;

constexpr int kBatch = 8;

double images_per_second(const std::string& list) {
  job::DataSetSpec spec;
  spec.format = job::DataFormat::image_list;
  spec.list = list;
  spec.root = "/";
  spec.image_size = 224;
  const auto set = runtime::open_data_set(spec);
  runtime::LoaderOptions options;
  options.batch = kBatch;
  options.threads = 1;
  options.uneven = job::Uneven::drop;
  options.augment = job::Augment::random_resized_crop;
  options.mean = {123.675, 116.28, 103.53};
  options.deviation = {58.395, 57.12, 57.375};
  runtime::Loader loader(*set, options);
  std::vector<double> rates;
  while (!bench::warmed_up(rates)) {
    double images = 0;
    const auto start = Clock::now();
    loader.start_epoch(static_cast<int>(rates.size()));
    while (const runtime::Batch* batch = loader.next()) images += batch->samples;
    rates.push_back(images / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return rates.back();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: bench_loader LIST\n", stderr);
    return 2;
  }
  try {
    std::printf("%f\n", images_per_second(argv[1]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_loader: %s\n", error.what());
    return 1;
  }
}
