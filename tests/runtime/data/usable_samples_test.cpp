#include "runtime/data/usable_samples.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <utility>

#include "runtime/data/expect_error.h"
#include "runtime/data/order/sampler.h"

namespace fleetrun::runtime::usable_samples_test {
namespace {

// Notes how each sample is read; some cannot be.
class NotingSet : public WholeImageSet {
 public:
  ErrorKind kind_of_problem = ErrorKind::data;
  mutable std::map<int, std::vector<bool>> reads;  // by sample: to the end?

  NotingSet(int samples, std::set<int> broken)
      : WholeImageSet({.shape = {1, 1, 1},
                       .classes = 1,
                       .class_names = {},
                       .labels = std::vector<std::int32_t>(static_cast<std::size_t>(samples))}),
        broken_(std::move(broken)) {}

  std::string describe(int sample) const override { return "noted-" + std::to_string(sample); }

 protected:
  void load(const Framing& framing, ReadScratch& scratch) const override {
    reads[framing.sample].push_back(framing.to_the_end);
    if (broken_.count(framing.sample) > 0)
      throw Error(kind_of_problem, describe(framing.sample) + ": broken");
    scratch.image.reset(shape());
    scratch.image.pixels[0] = static_cast<std::uint8_t>(framing.sample);
  }

 private:
  std::set<int> broken_;
};

constexpr SkipPolicy kSkip = {.bad_sample = job::BadSample::skip, .substitutes = true};

// Which sample was read; its pixel has to be that of the sample.
std::int32_t read(UsableSamples& samples, std::int32_t sample) {
  ReadScratch scratch;
  std::uint8_t pixel = 0;
  const std::int32_t found = samples.read({.sample = sample}, scratch, &pixel);
  if (found != kNoSample) CHECK(pixel == static_cast<std::uint8_t>(found));
  return found;
}

TEST_CASE("the error of a broken file names the key that leaves such files out") {
  NotingSet set(2, {0});
  UsableSamples samples(set, {});
  const Error broken = error_of([&] { read(samples, 0); });
  CHECK(broken.message() == "noted-0: broken");
  CHECK(broken.hint() == "data.bad_sample=skip leaves such files out, with a warning for each");
  set.kind_of_problem = ErrorKind::os;
  CHECK(error_of([&] { read(samples, 0); }).hint().empty());
}

TEST_CASE("a file that may not be read is not tried again") {
  NotingSet set(2, {0});
  UsableSamples samples(set, {});
  set.kind_of_problem = ErrorKind::permission;
  CHECK(error_of([&] { read(samples, 0); }).kind() == ErrorKind::permission);
  CHECK(set.reads.at(0).size() == 1);
}

TEST_CASE("a good sample is read to its end once") {
  const NotingSet set(4, {});
  UsableSamples samples(set, {});
  for (int i = 0; i < 3; ++i) CHECK(read(samples, 2) == 2);
  CHECK(set.reads == std::map<int, std::vector<bool>>{{2, {true, false, false}}});
  CHECK(read(samples, kNoSample) == kNoSample);
  CHECK(set.reads.size() == 1);
}

TEST_CASE("a bad sample ends the run unless bad samples are skipped") {
  const NotingSet set(4, {1});
  UsableSamples samples(set, {});
  check_error(ErrorKind::data, "noted-1: broken", [&] { read(samples, 1); });
  CHECK(samples.take_reasons().empty());
}

TEST_CASE("the next good sample takes the place of a skipped one, which is not read again") {
  const NotingSet set(6, {3, 5, 0});
  UsableSamples samples(set, kSkip);
  for (int i = 0; i < 2; ++i) {
    CHECK(read(samples, 5) == 1);  // after the last sample comes the first
    CHECK(read(samples, 3) == 4);
  }
  for (const int skipped : {0, 3, 5}) CHECK(set.reads.at(skipped).size() == 1);
  CHECK(samples.take_reasons() ==
        std::vector<std::string>{"noted-5: broken", "noted-0: broken", "noted-3: broken"});
  CHECK(samples.take_reasons().empty());
  CHECK(samples.skipped_names() == std::string("noted-0\0noted-3\0noted-5\0", 24));
}

TEST_CASE("without substitutes the place of a skipped sample stays empty") {
  const NotingSet set(4, {1});
  UsableSamples samples(set, {.bad_sample = job::BadSample::skip, .substitutes = false});
  CHECK(read(samples, 1) == kNoSample);
  CHECK(read(samples, 2) == 2);
  CHECK(set.reads.size() == 2);
}

TEST_CASE("a place is given up after 64 substitutes, or when no sample is left") {
  std::set<int> broken;
  for (int i = 10; i < 75; ++i) broken.insert(i);
  const NotingSet set(200, broken);
  UsableSamples samples(set, kSkip);
  CHECK(read(samples, 11) == 75);
  check_error(
      ErrorKind::data,
      "noted-10 and the 64 samples after it cannot be used, wanted at most 64 skipped in a row; the last that "
      "was skipped: ",
      [&] { read(samples, 10); });
  const NotingSet small(2, {0, 1});
  UsableSamples none(small, kSkip);
  check_error(ErrorKind::data,
              "none of the 2 samples can be used; the last that was skipped: ", [&] { read(none, 1); });
}

TEST_CASE("the disk may fail for one sample in a thousand, four reads each") {
  NotingSet set(2000, {7, 8, 9});
  set.kind_of_problem = ErrorKind::io;
  UsableSamples samples(set, kSkip);
  CHECK(read(samples, 8) == 10);
  CHECK(set.reads.at(8) == std::vector<bool>(4, true));
  CHECK(samples.take_reasons() ==
        std::vector<std::string>{"noted-8: broken (read 4 times)", "noted-9: broken (read 4 times)"});
  check_error(ErrorKind::io,
              "3 of 2000 samples could not be read, wanted at most 2 skipped; the last: noted-7",
              [&] { read(samples, 7); });
}

TEST_CASE("an error of the device ends the run, also if bad samples are skipped") {
  NotingSet set(5000, {3});
  set.kind_of_problem = ErrorKind::internal;
  UsableSamples samples(set, kSkip);
  check_error(ErrorKind::internal, "noted-3: ", [&] { read(samples, 3); });
  CHECK(set.reads[3].size() == 1);
}

TEST_CASE("want of memory is no fault of a sample") {
  NotingSet set(4, {1});
  set.kind_of_problem = ErrorKind::os;
  UsableSamples samples(set, kSkip);
  check_error(ErrorKind::os, "noted-1: broken", [&] { read(samples, 1); });
  CHECK(samples.skipped_names().empty());
}

}  // namespace
}  // namespace fleetrun::runtime::usable_samples_test
