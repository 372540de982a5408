#include "launch/nodes/address_book.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/system/socket_address.h"

namespace fleetrun::launch {
namespace {

constexpr auto kAnswerEvery = std::chrono::milliseconds(100);  // a look whether the thread has answers

bool is_numeric(const std::string& name) { return SocketAddress::from(Endpoint{name, 0}).has_value(); }

// The order of the answers may change each time, as a name server deals them out.
bool has_same_addresses(const NamedNode& a, const NamedNode& b) {
  return std::ranges::is_permutation(addresses_of(a), addresses_of(b));
}

}  // namespace

AddressBook::AddressBook(EventLoop& loop, std::vector<NamedNode> known)
    : timer_(loop), known_(std::move(known)) {}

std::vector<std::string> AddressBook::of(const std::string& name) const {
  if (is_numeric(name)) return {name};
  const auto found = std::ranges::find(known_, name, &NamedNode::name);
  return found == known_.end() ? std::vector<std::string>() : addresses_of(*found);
}

void AddressBook::keep_up(std::function<void()> changed) {
  changed_ = std::move(changed);
  look();
}

void AddressBook::stop() {
  timer_.cancel();
  changed_ = nullptr;
  looked_up_ = {};  // answers that nobody has taken would be old ones later
}

// A resolver may take as long as it likes, so the loop does not wait for it, and neither does the end of the book.
void AddressBook::look() {
  std::vector<std::string> names;
  for (const NamedNode& node : known_)
    if (!is_numeric(node.name)) names.push_back(node.name);
  if (names.empty()) return;
  if (!looked_up_.valid()) {
    std::packaged_task<std::vector<NamedNode>()> task([names] { return resolve_all(names); });
    looked_up_ = task.get_future();
    std::thread(std::move(task)).detach();
  }
  timer_.call_at(Clock::now() + kAnswerEvery, [this] { take(); });
}

void AddressBook::take() {
  if (looked_up_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return look();
  timer_.call_at(Clock::now() + kLookEvery, [this] { look(); });
  bool is_new = false;
  for (NamedNode& found : looked_up_.get()) {
    NamedNode& known = *std::ranges::find(known_, found.name, &NamedNode::name);
    if (found.address.empty() || has_same_addresses(found, known)) continue;
    known = std::move(found);
    is_new = true;
  }
  if (!is_new) return;
  const std::function<void()> changed = changed_;  // it may call keep_up()
  changed();
}

}  // namespace fleetrun::launch
