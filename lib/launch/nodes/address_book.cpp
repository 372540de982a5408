#include "launch/nodes/address_book.h"

#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <system_error>
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

std::vector<NamedNode> resolve_each(const std::vector<std::string>& names, int family) {
  std::vector<NamedNode> nodes;
  nodes.reserve(names.size());
  for (const std::string& name : names)
    nodes.push_back(family == AF_UNSPEC ? resolve_node(name) : resolve_node(name, family));
  return nodes;
}

// In a thread that takes no signals, because they are for the loop. Without a thread, the result is not valid.
std::future<std::vector<NamedNode>> resolve_in_background(const std::vector<std::string>& names, int family) {
  std::packaged_task<std::vector<NamedNode>()> task([names, family] { return resolve_each(names, family); });
  std::future<std::vector<NamedNode>> answers = task.get_future();
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {
    answers = {};
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return answers;
}

}  // namespace

AddressBook::AddressBook(EventLoop& loop, std::vector<NamedNode> known)
    : timer_(loop), known_(std::move(known)) {}

std::vector<std::string> AddressBook::of(const std::string& name) const {
  if (is_numeric(name)) return {name};
  const auto found = std::ranges::find(known_, name, &NamedNode::name);
  return found == known_.end() ? std::vector<std::string>() : addresses_of(*found);
}

void AddressBook::keep_up(std::vector<std::string> names, std::function<void()> changed) {
  names_ = std::move(names);
  std::erase_if(names_, is_numeric);
  for (const std::string& name : names_)
    if (std::ranges::find(known_, name, &NamedNode::name) == known_.end()) known_.push_back({name, ""});
  const bool looks_already = changed_ != nullptr;
  changed_ = std::move(changed);
  if (!looks_already) look();
}

void AddressBook::stop() {
  timer_.cancel();
  changed_ = nullptr;
  looked_up_ = {};  // answers that nobody has taken would be old ones later
}

// AF_UNSPEC: no name has an address yet.
int AddressBook::family() const {
  for (const NamedNode& node : known_)
    if (!node.address.empty()) return is_ipv6(node.address) ? AF_INET6 : AF_INET;
  return AF_UNSPEC;
}

// A resolver may take as long as it likes, so the loop does not wait for it, and neither does the end of the book.
void AddressBook::look() {
  if (names_.empty()) return;
  if (!looked_up_.valid()) looked_up_ = resolve_in_background(names_, family());
  if (looked_up_.valid())
    timer_.call_at(Clock::now() + kAnswerEvery, [this] { take(); });
  else
    timer_.call_at(Clock::now() + kLookEvery, [this] { look(); });
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
  const std::function<void()> changed = changed_;  // it may call keep_up() or stop()
  changed();
}

}  // namespace fleetrun::launch
