#include "runtime/training/ranks/agree_on_data.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/fact_hash.h"

namespace fleetrun::runtime {
namespace {

constexpr int kComparedSamples = 32;
constexpr std::size_t kComparedBytes = 1 << 20;  // of each: more than most photographs have
constexpr const char* kUnreadable = "cannot be read";

std::string name_of_file(const std::string& sample) { return sample.substr(sample.rfind('/') + 1); }

std::string hash_of_stored(const DataSet& set, int sample, std::vector<std::uint8_t>& bytes) {
  try {
    set.read_stored(sample, kComparedBytes, bytes);
  } catch (const Error& problem) {
    if (problem.kind() == ErrorKind::os) throw;
    return kUnreadable;  // the loader reports or skips it, as the job wants
  }
  FactHash hash;
  hash.add(bytes.data(), bytes.size());
  return fmt::format("{} bytes of hash {}", bytes.size(), hash.text());
}

void add_samples(const std::string& name, const DataSet& set, comm::Facts& facts) {
  std::vector<std::uint8_t> bytes;
  const int count = std::min(kComparedSamples, set.size());
  for (int i = 0; i < count; ++i) {
    const int sample = count == 1 ? 0 : static_cast<int>(std::int64_t{i} * (set.size() - 1) / (count - 1));
    facts.emplace_back(fmt::format("{}, sample {} ({})", name, sample, name_of_file(set.describe(sample))),
                       hash_of_stored(set, sample, bytes));
  }
}

void add_set(const std::string& name, const DataSet& set, comm::Facts& facts) {
  FactHash class_names, labels, files;
  for (const std::string& class_name : set.class_names()) class_names.add(class_name);
  for (int sample = 0; sample < set.size(); ++sample) {
    const std::int32_t label = set.label(sample);
    labels.add(&label, sizeof label);
    files.add(name_of_file(set.describe(sample)));
  }
  facts.emplace_back(name + ", number of samples", std::to_string(set.size()));
  facts.emplace_back(name + ", number of classes", std::to_string(set.classes()));
  facts.emplace_back(name + ", shape of an image",
                     fmt::format("[{},{},{}]", set.shape().channels, set.shape().height, set.shape().width));
  facts.emplace_back(name + ", hash of the class names", class_names.text());
  facts.emplace_back(name + ", hash of the file names", files.text());
  facts.emplace_back(name + ", hash of the labels", labels.text());
  add_samples(name, set, facts);
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string hash_of(const comm::Facts& facts) {
  FactHash hash;
  for (const auto& [name, value] : facts) {
    hash.add(name);
    hash.add(value);
  }
  return hash.text();
}

comm::Deadline facts_deadline() { return comm::Deadline(comm::kJoinDeadline); }

}  // namespace

comm::Facts facts_of(const DataSets& data) {
  comm::Facts facts;
  if (data.train) add_set("data.train", *data.train, facts);
  if (data.test) add_set("data.test", *data.test, facts);
  return facts;
}

std::string digest_of(const DataSet& set) {
  comm::Facts facts;
  add_set("", set, facts);
  const bool is_known =
      std::none_of(facts.begin(), facts.end(), [](const auto& fact) { return fact.second == kUnreadable; });
  return is_known ? hash_of(facts) : "";
}

// Ranks that have the same facts send a hash of them and no more.
void agree_on_data(const comm::World& world, const DataSets& data) {
  if (world.env.nodes == 1) return;
  const comm::Facts facts = facts_of(data);
  const std::vector<std::string> hashes =
      comm::exchange(world.party(), "data hash", hash_of(facts), facts_deadline());
  if (std::all_of(hashes.begin(), hashes.end(), [&](auto& each) { return each == hashes[0]; })) return;

  const std::vector<std::string> nodes =
      comm::exchange(world.party(), "data nodes",
                     fmt::format("node {}, {}", world.env.node_rank, host_name()), facts_deadline());
  const auto other =
      std::find_if(hashes.begin(), hashes.end(), [&](auto& each) { return each != hashes[0]; });
  try {
    comm::agree(world.party(), "data facts", facts, facts_deadline());
  } catch (const Error& difference) {
    throw Error(difference.kind(),
                fmt::format("the nodes have different data ({} and {}): {}", nodes[0],
                            nodes[static_cast<std::size_t>(other - hashes.begin())], difference.message()),
                "copy the data of one node to the others, or use a shared disk");
  }
}

}  // namespace fleetrun::runtime
