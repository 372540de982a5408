#include "runtime/data/loader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "runtime/data/expect_error.h"
#include "support/allocation_count.h"

namespace fleetrun::runtime::loader_test {
namespace {

// Images whose every byte is the sample's number; some of them cannot be read.
class NumberSet : public WholeImageSet {
 public:
  ErrorKind kind_of_problem = ErrorKind::data;

  explicit NumberSet(int samples, std::vector<int> broken = {})
      : WholeImageSet(
            {.shape = {1, 2, 3}, .classes = samples, .class_names = {}, .labels = labels_of(samples)}),
        broken_(std::move(broken)) {}

  std::string describe(int sample) const override { return "number-" + std::to_string(sample) + ".jpg"; }

 protected:
  void load(const Framing& framing, ReadScratch& scratch) const override {
    if (std::find(broken_.begin(), broken_.end(), framing.sample) != broken_.end())
      throw Error(kind_of_problem, describe(framing.sample) + ": broken");
    scratch.image.reset(shape());
    std::fill(scratch.image.pixels.begin(), scratch.image.pixels.end(),
              static_cast<std::uint8_t>(framing.sample));
  }

 private:
  static std::vector<std::int32_t> labels_of(int samples) {
    std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
    std::iota(labels.begin(), labels.end(), 0);
    return labels;
  }
  std::vector<int> broken_;
};

// Readers wait until they are let in.
class GatedSet : public NumberSet {
 public:
  using NumberSet::NumberSet;

  void wait_for_reader() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return started_ > 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 protected:
  void load(const Framing& framing, ReadScratch& scratch) const override {
    std::unique_lock lock(mutex_);
    ++started_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    NumberSet::load(framing, scratch);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int started_ = 0;
  bool open_ = false;
};

LoaderOptions numbers(int batch) {
  LoaderOptions options;
  options.batch = batch;
  options.mean = {0};
  options.deviation = {1};
  return options;
}

// All that an epoch gives: labels, and a sum over the images that tells them apart.
struct Epoch {
  std::vector<std::int32_t> labels;
  std::vector<float> images;
  std::vector<int> samples;
  bool operator==(const Epoch&) const = default;
};

Epoch read_epoch(Loader& loader, const DataSet& set, int batch, int epoch) {
  Epoch found;
  loader.start_epoch(epoch);
  while (const Batch* next = loader.next()) {
    found.samples.push_back(next->samples);
    found.labels.insert(found.labels.end(), next->labels, next->labels + batch);
    found.images.insert(found.images.end(), next->images,
                        next->images + static_cast<std::size_t>(batch) * set.shape().elements());
  }
  return found;
}

std::unique_ptr<DataSet> small_pictures() {
  job::DataSetSpec spec;
  spec.format = job::DataFormat::synthetic;
  spec.samples = 75;
  spec.shape = {3, 12, 12};
  spec.classes = 5;
  return open_data_set(spec);
}

TEST_CASE("labels alone are those of the batches with images, in training and in evaluation") {
  const NumberSet set(50), unreadable(50, {7, 8, 9});
  for (const bool evaluation : {false, true}) {
    LoaderOptions options = numbers(8);
    options.evaluation = evaluation;
    Loader whole(set, options);
    options.images = false;
    Loader labels(unreadable, options);
    const Epoch wanted = read_epoch(whole, set, 8, 3), found = read_epoch(labels, set, 8, 3);
    CHECK(found.labels == wanted.labels);
    CHECK(found.samples == wanted.samples);
  }
}

TEST_CASE("pixels with their views are the bytes of the numbers that a batch has otherwise") {
  const auto set = small_pictures();
  const NumberSet bad(9, {4});
  for (const bool evaluation : {false, true})
    for (const DataSet* from : std::initializer_list<const DataSet*>{set.get(), &bad}) {
      LoaderOptions options;
      options.batch = 8;
      options.augment = job::Augment::crop_flip;
      options.bad_sample = job::BadSample::skip;
      options.evaluation = evaluation;
      Loader numbers(*from, options);
      options.form = ImageForm::pixels;
      Loader pixels(*from, options);
      const ImageShape& shape = from->shape();
      const Normalisation normalisation = make_normalisation({}, {}, shape.channels);
      std::vector<std::uint8_t> row;
      std::vector<float> planes(shape.elements());
      numbers.start_epoch(2);
      pixels.start_epoch(2);
      while (const Batch* wanted = numbers.next()) {
        const Batch* const got = pixels.next();
        REQUIRE(got != nullptr);
        CHECK(got->images == nullptr);
        CHECK(wanted->pixels == nullptr);
        CHECK(got->samples == wanted->samples);
        for (std::size_t place = 0; place < 8; ++place) {
          CHECK(got->labels[place] == wanted->labels[place]);
          const auto [top, left, mirrored, present] = got->views[place];
          CHECK(present == (got->labels[place] == kNoSample ? 0 : 1));
          if (present == 0) continue;
          write_planes(got->pixels + place * planes.size(), shape, {top, left, mirrored == 1}, normalisation,
                       row, planes.data());
          CHECK(std::equal(planes.begin(), planes.end(), wanted->images + place * planes.size()));
        }
      }
      CHECK(pixels.next() == nullptr);
    }
}

TEST_CASE("batches come in the order of the plan, image beside label") {
  const NumberSet set(50);
  LoaderOptions options = numbers(8);
  options.seed = 9;
  Loader loader(set, options);
  const Epoch epoch = read_epoch(loader, set, 8, 4);
  const std::vector<std::int32_t> plan = plan_epoch({.samples = 50, .batch = 8, .seed = 9}, {4});
  CHECK(epoch.labels == plan);
  CHECK(epoch.samples == std::vector<int>(7, 8));
  CHECK(loader.batches_per_epoch() == 7);
  for (std::size_t i = 0; i < epoch.images.size(); ++i)
    if (epoch.images[i] != static_cast<float>(plan[i / 6]))
      FAIL("image ", i / 6, " is not that of its label");
}

// White images, of which the first is the only one of its class.
class RareSet : public WholeImageSet {
 public:
  static constexpr int kSamples = 48;

  RareSet()
      : WholeImageSet({.shape = {1, 9, 9}, .classes = 2, .class_names = {}, .labels = labels_of_rare()}) {}

  std::string describe(int sample) const override { return std::to_string(sample); }

 protected:
  void load(const Framing&, ReadScratch& scratch) const override {
    scratch.image.reset(shape());
    std::fill(scratch.image.pixels.begin(), scratch.image.pixels.end(), std::uint8_t{255});
  }

 private:
  static std::vector<std::int32_t> labels_of_rare() {
    std::vector<std::int32_t> labels(kSamples, 1);
    labels.front() = 0;
    return labels;
  }
};

LoaderOptions balanced(int batch) {
  LoaderOptions options;
  options.batch = batch;
  options.sampler = job::Sampler::balanced;
  options.augment = job::Augment::crop_flip;
  return options;
}

TEST_CASE("a sample that a balanced epoch has several times is augmented anew each time") {
  const RareSet set;
  Loader loader(set, balanced(8));
  const Epoch epoch = read_epoch(loader, set, 8, 0);
  std::set<std::vector<float>> views;
  const auto size = static_cast<std::ptrdiff_t>(set.shape().elements());
  for (std::size_t i = 0; i < epoch.labels.size(); ++i) {
    const auto begin = epoch.images.begin() + static_cast<std::ptrdiff_t>(i) * size;
    if (epoch.labels[i] == 0) views.emplace(begin, begin + size);
  }
  CHECK(std::count(epoch.labels.begin(), epoch.labels.end(), 0) == RareSet::kSamples / 2);
  CHECK(views.size() > RareSet::kSamples / 4);  // of 81 possible ones
}

TEST_CASE("a place of a balanced epoch has one view, on any number of ranks and after a restart") {
  const RareSet set;
  Loader alone(set, balanced(8));
  const Epoch wanted = read_epoch(alone, set, 8, 3);
  const std::size_t batch = 4 * set.shape().elements();
  for (const int rank : {0, 1}) {
    LoaderOptions options = balanced(4);
    options.world = 2;
    options.rank = rank;
    Loader loader(set, options);
    loader.start_epoch(3, 2);
    for (std::size_t k = 2; const Batch* next = loader.next(); ++k) {
      const auto begin = wanted.images.begin() +
                         static_cast<std::ptrdiff_t>((2 * k + static_cast<std::size_t>(rank)) * batch);
      CHECK(std::equal(next->images, next->images + batch, begin));
    }
    loader.start_epoch({.epoch = 3, .batch = 1, .shift = 8});  // a batch later
    const Batch* const shifted = loader.next();
    const auto begin =
        wanted.images.begin() + static_cast<std::ptrdiff_t>((4 + static_cast<std::size_t>(rank)) * batch);
    CHECK(std::equal(shifted->images, shifted->images + batch, begin));
  }
}

TEST_CASE("batches do not depend on threads or prefetch, nor on what was read before") {
  const auto set = small_pictures();
  const auto read = [&](int threads, int prefetch) {
    LoaderOptions options;
    options.batch = 10;
    options.augment = job::Augment::crop_flip;
    options.threads = threads;
    options.prefetch = prefetch;
    Loader loader(*set, options);
    return std::pair(read_epoch(loader, *set, 10, 0), read_epoch(loader, *set, 10, 1));
  };
  const auto expected = read(1, 1);
  CHECK_FALSE(expected.first == expected.second);
  for (const int threads : {1, 2, 7})
    for (const int prefetch : {1, 3, 20}) CHECK((read(threads, prefetch) == expected));
}

TEST_CASE("a sample looks the same on whichever rank it is read") {
  const auto set = small_pictures();
  const auto images_by_sample = [&](int world) {
    std::map<std::int32_t, std::vector<float>> images;
    for (int rank = 0; rank < world; ++rank) {
      LoaderOptions options;
      options.batch = 15 / world;
      options.rank = rank;
      options.world = world;
      options.augment = job::Augment::crop_flip;
      Loader loader(*set, options);
      const Epoch epoch = read_epoch(loader, *set, options.batch, 2);
      const std::vector<std::int32_t> plan = plan_epoch(
          {.samples = 75, .batch = options.batch, .rank = rank, .world = world, .seed = options.seed}, {2});
      const std::size_t elements = set->shape().elements();
      for (std::size_t i = 0; i < plan.size(); ++i)
        images[plan[i]] = {epoch.images.begin() + static_cast<std::ptrdiff_t>(i * elements),
                           epoch.images.begin() + static_cast<std::ptrdiff_t>((i + 1) * elements)};
    }
    return images;
  };
  const auto alone = images_by_sample(1);
  CHECK(alone.size() == 75);
  CHECK(alone == images_by_sample(3));
  CHECK(alone == images_by_sample(5));
}

TEST_CASE("an evaluation marks the places without a sample and leaves them zero") {
  const NumberSet set(5);
  LoaderOptions options = numbers(2);
  options.evaluation = true;
  options.rank = 1;
  options.world = 2;
  options.mean = {100};
  Loader loader(set, options);
  loader.start_epoch(0);
  const Batch* first = loader.next();
  REQUIRE(first != nullptr);
  CHECK(first->samples == 2);
  CHECK(first->labels[0] == 2);
  CHECK(first->images[0] == -98);
  const Batch* last = loader.next();
  REQUIRE(last != nullptr);
  CHECK(last->samples == 0);
  CHECK(last->labels[0] == kNoSample);
  CHECK(last->labels[1] == kNoSample);
  for (int i = 0; i < 12; ++i) CHECK(last->images[i] == 0);
  CHECK(loader.next() == nullptr);
  CHECK(loader.next() == nullptr);
}

TEST_CASE("batches are aligned to cache lines") {
  const NumberSet set(50);
  Loader loader(set, numbers(7));
  loader.start_epoch(0);
  while (const Batch* batch = loader.next()) CHECK(reinterpret_cast<std::uintptr_t>(batch->images) % 64 == 0);
}

TEST_CASE("asking for the next batch allocates nothing") {
  const NumberSet set(400);
  Loader loader(set, numbers(8));
  loader.start_epoch(0);
  const std::int64_t before = allocations_of_this_thread();
  int batches = 0;
  while (loader.next() != nullptr) ++batches;
  CHECK(allocations_of_this_thread() == before);
  CHECK(batches == 50);
}

TEST_CASE("the next batch waits for nobody who asks late: at most prefetch batches are made ahead") {
  const NumberSet set(400);
  LoaderOptions options = numbers(1);
  options.prefetch = 3;
  options.shuffle = false;
  Loader loader(set, options);
  loader.start_epoch(0);
  const Batch* first = loader.next();
  REQUIRE(first != nullptr);
  const float* images = first->images;
  CHECK(first->images[0] == 0);
  for (int k = 1; k <= 4; ++k) {
    const Batch* batch = loader.next();
    REQUIRE(batch != nullptr);
    CHECK((batch->images == images) == (k == 4));  // prefetch + 1 batches go round
    CHECK(batch->images[0] == static_cast<float>(k));
  }
}

TEST_CASE("a sample that cannot be read is named by the batch that holds it, whatever the threads") {
  const NumberSet set(40, {21, 23, 30});
  for (const int threads : {1, 4}) {
    LoaderOptions options = numbers(10);
    options.shuffle = false;
    options.threads = threads;
    Loader loader(set, options);
    loader.start_epoch(0);
    CHECK(loader.next() != nullptr);
    CHECK(loader.next() != nullptr);
    check_error(ErrorKind::data, "number-21.jpg: broken", [&] { loader.next(); });
    check_error(ErrorKind::data, "number-21.jpg: broken", [&] { loader.next(); });
  }
}

TEST_CASE("an epoch can be given up for the next, and an error with it") {
  const NumberSet set(40, {3});
  LoaderOptions options = numbers(5);
  options.shuffle = false;
  Loader loader(set, options);
  for (int epoch = 0; epoch < 20; ++epoch) {
    loader.start_epoch(epoch);
    check_error(ErrorKind::data, "number-3.jpg", [&] { loader.next(); });
  }
  const NumberSet whole(400);
  Loader other(whole, numbers(4));
  for (int epoch = 0; epoch < 50; ++epoch) {
    other.start_epoch(epoch);
    for (int i = 0; i < epoch % 5; ++i) CHECK(other.next() != nullptr);
  }
  CHECK(read_epoch(other, whole, 4, 7).labels == plan_epoch({.samples = 400, .batch = 4, .seed = 1}, {7}));
}

TEST_CASE("a loader that nobody reads from ends at once") {
  const NumberSet set(1000);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    Loader loader(set, numbers(2));
    if (i % 2 == 0) loader.start_epoch(0);
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));  // it takes some milliseconds
}

TEST_CASE("a loader ends while its threads are reading") {
  GatedSet set(100);
  auto loader = std::make_unique<Loader>(set, numbers(4));
  loader->start_epoch(0);
  set.wait_for_reader();
  std::future<void> ended = std::async(std::launch::async, [&] { loader.reset(); });
  set.open();
  CHECK(ended.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
}

TEST_CASE("before an epoch there is no batch") {
  const NumberSet set(10);
  Loader loader(set, numbers(2));
  CHECK(loader.next() == nullptr);
}

TEST_CASE("options that do not fit the data set are refused") {
  const NumberSet set(10);
  LoaderOptions options = numbers(4);
  options.world = 3;
  options.uneven = job::Uneven::drop;
  check_error(ErrorKind::config, "the data set has 10 samples, one step of all ranks needs 12",
              [&] { Loader(set, options); });
  options = numbers(4);
  options.mean = {1, 2, 3};
  check_error(ErrorKind::config, "mean of a data set has 3 numbers", [&] { Loader(set, options); });
  options = numbers(0);
  check_error(ErrorKind::config, "batch_size 0", [&] { Loader(set, options); });
}

TEST_CASE("the job's keys become the loader's options") {
  job::DataSpec data;
  data.batch_size = 7;
  data.shuffle = false;
  data.uneven = job::Uneven::drop;
  data.loader_threads = 3;
  data.prefetch = 9;
  data.train.augment = job::Augment::crop_flip;
  data.train.mean = {1};
  data.train.deviation = {2};
  const LoaderOptions options = make_loader_options(data, data.train);
  CHECK(options.batch == 7);
  CHECK_FALSE(options.shuffle);
  CHECK(options.uneven == job::Uneven::drop);
  CHECK(options.threads == 3);
  CHECK(options.prefetch == 9);
  CHECK(options.augment == job::Augment::crop_flip);
  CHECK(options.mean == std::vector<double>{1});
  CHECK(options.deviation == std::vector<double>{2});
}

}  // namespace
}  // namespace fleetrun::runtime::loader_test
