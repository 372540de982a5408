// The addresses of the names of nodes, as this host sees them. While nodes look for each other, a thread resolves the names again and again,
// because a host may come back with another address, and the name of a pod gets one when the pod starts.
#pragma once
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"
#include "launch/plan/resolve_names.h"

namespace fleetrun::launch {

class AddressBook {
 public:
  static constexpr auto kLookEvery = std::chrono::seconds(5);

  // `known`: names, and the addresses that they have so far, all of one family. `loop` outlives the book.
  AddressBook(EventLoop& loop, std::vector<NamedNode> known);

  // All of a name; none: this host does not know it. A numeric address stands for itself.
  std::vector<std::string> of(const std::string& name) const;

  // Resolves these names from now on until stop(). `changed` is called when a name has got other addresses; a name that has lost them keeps the
  // old ones.
  void keep_up(std::vector<std::string> names, std::function<void()> changed);
  void stop();

 private:
  void look();
  void take();
  int family() const;

  Timer timer_;
  std::vector<NamedNode> known_;
  std::vector<std::string> names_;                 // to resolve
  std::function<void()> changed_;                  // null: it has stopped
  std::future<std::vector<NamedNode>> looked_up_;  // of the thread that asks; it may outlive the book
};

}  // namespace fleetrun::launch
