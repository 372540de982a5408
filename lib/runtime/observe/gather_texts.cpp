#include "runtime/observe/gather_texts.h"

#include <cstdint>
#include <utility>

namespace fleetrun::runtime {

std::vector<std::string> gather_texts(const std::string& mine, comm::Communicator& communicator) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(communicator.size()));
  auto size = static_cast<std::int64_t>(mine.size());
  communicator.all_gather({&size, 1, DType::i64}, {sizes.data(), sizes.size(), DType::i64});
  std::vector<std::string> all;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    std::string text = rank == communicator.rank() ? mine : std::string();
    text.resize(static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]));
    communicator.broadcast({text.data(), text.size(), DType::u8}, rank);
    if (communicator.rank() == 0) all.push_back(std::move(text));
  }
  return all;
}

std::string text_of_first(std::string mine, comm::Communicator& communicator) {
  if (communicator.size() == 1) return mine;
  auto size = static_cast<std::int64_t>(mine.size());
  communicator.broadcast({&size, 1, DType::i64}, 0);
  mine.resize(static_cast<std::size_t>(size));
  if (size > 0) communicator.broadcast({mine.data(), mine.size(), DType::u8}, 0);
  return mine;
}

}  // namespace fleetrun::runtime
