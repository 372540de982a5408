#include "launch/nodes/address_book.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::address_book_test {
namespace {

using Addresses = std::vector<std::string>;

TEST_CASE("a book has all addresses of the names that it knows, and numeric addresses stand for themselves") {
  EventLoop loop;
  const AddressBook book(loop, {{"alpha", "10.0.0.1", {"192.168.0.1"}}, {"beta", ""}});
  CHECK(book.of("alpha") == Addresses{"10.0.0.1", "192.168.0.1"});
  CHECK(book.of("beta").empty());
  CHECK(book.of("gamma").empty());
  CHECK(book.of("10.0.0.9") == Addresses{"10.0.0.9"});
  CHECK(book.of("fd00::9") == Addresses{"fd00::9"});
}

TEST_CASE(
    "while it keeps up, a name gets other addresses, and keeps those that it had if nobody knows it any more") {
  EventLoop loop;
  AddressBook book(
      loop, {{"localhost", "10.0.0.1"}, {"no-such-host.invalid", "10.0.0.2"}, {"10.0.0.3", "10.0.0.3"}});
  bool changed = false;
  book.keep_up({"localhost", "no-such-host.invalid", "10.0.0.3"}, [&] {
    changed = true;
    book.stop();
  });
  while (!changed) loop.run_one();
  CHECK(book.of("localhost") == Addresses{"127.0.0.1"});
  CHECK(book.of("no-such-host.invalid") == Addresses{"10.0.0.2"});
}

}  // namespace
}  // namespace fleetrun::launch::address_book_test
