#include "comm/rendezvous/memory_store.h"

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::comm {

void MemoryStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
}

std::string MemoryStore::get(const std::string& key, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline.end(), [&] { return values_.count(key) != 0; }))
    throw Error(ErrorKind::temporary,
                fmt::format("nobody set \"{}\" within {:g} s", key, deadline.total_seconds()));
  return values_.at(key);
}

std::optional<std::string> MemoryStore::look(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace fleetrun::comm
