#include "runtime/data/split_facts.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/data/split.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::split_facts_test {
namespace {

constexpr double kShare = 0.25;
constexpr std::int64_t kSeed = 3;

// A list of images, which are not opened.
SplitFacts facts_of_list(const TemporaryFolder& folder, const std::vector<std::string>& lines,
                         double share = kShare, std::int64_t seed = kSeed) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
    folder.write(line.substr(0, line.rfind(' ')), "");
  }
  folder.write("list.txt", text);
  job::DataSetSpec spec;
  spec.format = job::DataFormat::image_list;
  spec.list = folder / "list.txt";
  spec.root = folder.path();
  spec.image_size = 4;
  const SplitSet split = split_data_set(open_data_set(spec), share, seed);
  return make_split_facts(share, seed, *split.train, *split.test);
}

std::vector<std::string> lines_of(int count) {
  std::vector<std::string> lines;
  for (int number = 0; number < count; ++number)
    lines.push_back(fmt::format("{}/{}.png {}", number % 3, number, number % 2));
  return lines;
}

TEST_CASE("the same files and labels in another folder are the same split") {
  const TemporaryFolder here, there;
  const SplitFacts facts = facts_of_list(here, lines_of(16));
  CHECK(facts.train == 12);
  CHECK(facts.evaluation == 4);
  CHECK(facts == facts_of_list(there, lines_of(16)));
  CHECK(difference_of(facts, facts).empty());
}

TEST_CASE("other labels, other names and another order of as many samples are another split") {
  const TemporaryFolder folder;
  const SplitFacts facts = facts_of_list(folder, lines_of(16));
  std::vector<std::string> renamed = lines_of(16), moved = renamed, swapped = renamed;
  renamed[5] = "2/x.png 1";
  moved[5] = "1/5.png 1";
  std::swap(swapped[0], swapped[2]);
  for (const auto& lines : {renamed, moved, swapped})
    CHECK(difference_of(facts, facts_of_list(folder, lines)) == "with other files or labels in data.train");
}

TEST_CASE("what differs is named by the key that the user can change") {
  const TemporaryFolder folder;
  const SplitFacts facts = facts_of_list(folder, lines_of(16));
  CHECK(difference_of({}, facts) == "without data.split, the job has 0.25");
  CHECK(difference_of(facts, facts_of_list(folder, lines_of(16), 0.5)) ==
        "with data.split 0.25, the job has 0.5");
  CHECK(difference_of(facts, facts_of_list(folder, lines_of(16), kShare, 4)) ==
        "with train.seed 3, the job has 4");
  CHECK(difference_of(facts, facts_of_list(folder, lines_of(20))) ==
        "with 12 samples to train on and 4 to evaluate on, now there are 14 and 6");
  SplitFacts old = facts;
  old.evaluation = 0;
  CHECK(difference_of(old, facts_of_list(folder, lines_of(20))) ==
        "with 12 samples to train on, now there are 14");
}

TEST_CASE("the keys that draw the same samples again are those that differ") {
  const TemporaryFolder folder;
  const SplitFacts facts = facts_of_list(folder, lines_of(16));
  CHECK(keys_that_differ(facts, facts_of_list(folder, lines_of(16), 0.5)) == "data.split=0.25");
  CHECK(keys_that_differ(facts, facts_of_list(folder, lines_of(16), 0.5, 4)) ==
        "data.split=0.25 train.seed=3");
  CHECK(keys_that_differ(facts, facts_of_list(folder, lines_of(20))).empty());
  CHECK(keys_that_differ({}, facts).empty());
}

TEST_CASE("facts are read back as they were written, and nothing else is read") {
  const TemporaryFolder folder;
  const SplitFacts facts = facts_of_list(folder, lines_of(16));
  CHECK(read_split_facts(as_json(facts)) == facts);
  CHECK(read_split_facts(as_json(SplitFacts())) == SplitFacts());
  CHECK_FALSE(read_split_facts(JsonValue("0.1")));
  CHECK_FALSE(read_split_facts(JsonValue::object({{"share", 0.1}})));
}

}  // namespace
}  // namespace fleetrun::runtime::split_facts_test
