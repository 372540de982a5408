// The data sets of a job, and the loaders that hand out this rank's share of their samples.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/run/rank_env.h"
#include "base/run/timeline.h"
#include "job/spec/job_spec.h"
#include "runtime/data/formats/data_set.h"
#include "runtime/data/loader.h"
#include "runtime/data/split_facts.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

struct DataSets {
  std::unique_ptr<DataSet> train;  // null: only evaluation
  std::unique_ptr<DataSet> test;   // null: no evaluation
  SplitFacts split;                // how data.split shares the samples
  std::vector<std::string> notes;  // a line each: which files are ignored, how data.split shares the samples

  // `seed` draws the samples of data.split. Throws the errors of open_data_set() and split_data_set(), and Error(data) when the two
  // sets do not fit the same model.
  DataSets(const job::DataSpec& spec, std::int64_t seed);

  // Only data.test, for a model with these classes; see open_test_set().
  DataSets(const job::DataSetSpec& test_spec, const std::vector<std::string>& classes);
};

// A warning if one step of all ranks has more samples than data.train, so that samples come again within it; "": it has not.
std::string warn_of_large_step(const DataSet& train, const job::JobSpec& job, int ranks);

// For this rank's share of data.test. `device` takes the batches, and outlives the loader.
LoaderOptions evaluation_loader(const job::JobSpec& job, const RankEnv& env, Device& device);

struct Loaders {
  Loader train;
  std::unique_ptr<Loader> test;  // null: no evaluation

  // `sets` and `device`, which takes the batches, outlive the loaders. `timeline`: gets a span per piece of a training batch; null: no
  // trace is wanted. Throws the errors of Device::make_jpeg_decoder().
  Loaders(const DataSets& sets, const job::JobSpec& job, const RankEnv& env, Device& device,
          Timeline* timeline);
};

}  // namespace fleetrun::runtime
