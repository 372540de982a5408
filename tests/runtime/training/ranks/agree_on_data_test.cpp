#include "runtime/training/ranks/agree_on_data.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/error/error.h"
#include "comm/rendezvous/memory_store.h"
#include "runtime/data/image_files.h"
#include "support/run_world.h"
#include "support/shared_store.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::agree_on_data_test {
namespace {

// CIFAR's format: `samples` records, which count up from `start`.
void write_batch(const std::string& path, int samples, int start) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < samples; ++i)
    file << static_cast<char>((start + i) % 10) << std::string(3 * 32 * 32, static_cast<char>(start + i));
}

DataSets open_batches(const std::string& path) {
  job::DataSpec spec;
  spec.train.format = job::DataFormat::cifar_bin;
  spec.train.path = path;
  return {spec, 1};
}

// What the ranks of two nodes say whose data is in these files; "" where they agree.
std::string difference(const std::string& first, const std::string& second) {
  comm::MemoryStore store;
  std::vector<std::string> said(2);
  testing::run_ranks(2, [&](int rank) {
    comm::World world;
    world.env.rank = world.env.node_rank = rank;
    world.env.world_size = world.env.nodes = 2;
    world.store = std::make_unique<testing::SharedStore>(store);
    try {
      agree_on_data(world, open_batches(rank == 0 ? first : second));
    } catch (const Error& error) {
      said[static_cast<std::size_t>(rank)] = std::to_string(error.exit_code()) + " " + error.message();
    }
  });
  CHECK(said[0] == said[1]);
  return said[0];
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("nodes with copies of the same data in different folders agree") {
  const TemporaryFolder folder;
  write_batch(folder / "a/train.bin", 100, 0);
  write_batch(folder / "b/train.bin", 100, 0);
  CHECK(difference(folder / "a/train.bin", folder / "b/train.bin").empty());
}

TEST_CASE("nodes with different data all end with 76, and say which nodes, what differs, and both values") {
  const TemporaryFolder folder;
  write_batch(folder / "a/train.bin", 100, 0);
  write_batch(folder / "fewer/train.bin", 99, 0);
  write_batch(folder / "labels/train.bin", 100, 1);
  write_batch(folder / "names/other.bin", 100, 0);
  const std::string fewer = difference(folder / "a/train.bin", folder / "fewer/train.bin");
  CHECK(fewer.starts_with("76 the nodes have different data (node 0, "));
  CHECK(has(fewer, " and node 1, "));
  CHECK(has(fewer, "ranks differ in data.train, number of samples: rank 0 has 100, rank 1 has 99"));
  CHECK(has(difference(folder / "a/train.bin", folder / "labels/train.bin"),
            "data.train, hash of the labels: "));
  CHECK(has(difference(folder / "a/train.bin", folder / "names/other.bin"),
            "data.train, hash of the file names: "));
}

TEST_CASE("a sample whose bytes differ is named with its file") {
  const TemporaryFolder folder;
  write_batch(folder / "a/train.bin", 100, 0);
  write_batch(folder / "b/train.bin", 100, 0);
  std::fstream(folder / "b/train.bin", std::ios::in | std::ios::out | std::ios::binary)
          .seekp(-1, std::ios::end)
      << 'x';
  const std::string said = difference(folder / "a/train.bin", folder / "b/train.bin");
  CHECK_MESSAGE(
      has(said,
          "ranks differ in data.train, sample 99 (train.bin, image 99): rank 0 has 3073 bytes of hash "),
      said);
}

TEST_CASE("a data set has the digest of its samples, and none while one of them cannot be read") {
  const TemporaryFolder folder;
  for (const char* name : {"a/1.png", "b/1.png", "b/2.png"}) {
    std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
    folder.write(name, make_png({}, 4, 4, std::string(48, name[0])));
  }
  job::DataSpec spec;
  spec.train.format = job::DataFormat::image_folder;
  spec.train.path = folder.path();
  spec.train.image_size = 4;
  const auto digest = [&] { return digest_of(*DataSets(spec, 1).train); };
  const std::string whole = digest();
  CHECK_FALSE(whole.empty());
  std::filesystem::rename(folder / "b/2.png", folder / "kept");
  std::filesystem::create_symlink(folder / "nowhere", folder / "b/2.png");
  CHECK(digest().empty());
  std::filesystem::rename(folder / "kept", folder / "b/2.png");
  CHECK(digest() == whole);
}

}  // namespace
}  // namespace fleetrun::runtime::agree_on_data_test
