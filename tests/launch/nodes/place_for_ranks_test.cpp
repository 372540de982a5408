// Where the ranks of the embedded runtime meet if the first node has several addresses.
#include <doctest/doctest.h>

#include "launch/nodes/coordinator_scene.h"

namespace fleetrun::launch::place_for_ranks_test {
namespace {

using coordinator_scene::Scene;

CoordinatorOptions with_three_addresses(int nodes) {
  return {.nodes = nodes,
          .run_id = "run",
          .names = {},
          .addresses = {"10.0.0.9", "10.1.0.9", "10.2.0.9"},
          .restart = {}};
}

// Where the ranks meet if the first node, peer 1, has three addresses, and the others reach these of them. The scene has one node more than `reached`.
std::string place_of_ranks(Scene& scene, const std::vector<std::vector<std::string>>& reached) {
  for (PeerId peer = 1; peer <= reached.size() + 1; ++peer)
    scene.say(peer, Scene::join(1, static_cast<int>(peer) - 1));
  Ready first = Scene::ready({6070});
  first.store = {{"10.0.0.9", 98}, {"10.1.0.9", "10.2.0.9"}};
  scene.say(1, first);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    Ready ready = Scene::ready({7070});
    ready.reaches = reached[i];
    scene.say(i + 2, ready);
  }
  REQUIRE(scene.last<Start>(2) != nullptr);
  return scene.last<Start>(2)->store.host;
}

// "": the node has heard none.
std::string warning_about_place(Scene& scene, PeerId peer) {
  for (const FromFirst& message : scene.told[peer])
    if (const auto* note = std::get_if<Note>(&message);
        note != nullptr && note->line.starts_with("the ranks"))
      return note->line;
  return "";
}

TEST_CASE("the ranks of all nodes meet at the first address of the first node that all nodes reach") {
  Scene scene(with_three_addresses(3)), other(with_three_addresses(3));
  CHECK(place_of_ranks(scene, {{"10.2.0.9", "10.1.0.9", "10.0.0.9"}, {"10.0.0.9"}}) == "10.0.0.9");
  CHECK(place_of_ranks(other, {{"10.2.0.9", "10.1.0.9"}, {"10.0.0.9", "10.2.0.9"}}) == "10.2.0.9");
  for (Scene* const one : {&scene, &other}) CHECK(warning_about_place(*one, 2) == "");
}

TEST_CASE("all nodes hear that the first node has no address that all of them reach") {
  Scene scene(with_three_addresses(4));
  CHECK(place_of_ranks(scene, {{"10.1.0.9"}, {"10.2.0.9"}, {"10.2.0.9"}}) == "10.2.0.9");
  CHECK(
      warning_about_place(scene, 4) ==
      "the ranks meet at 10.2.0.9 of node 0 (10.0.0.9, host), and 1 of 4 nodes cannot reach it, such as node 1 "
      "(10.0.0.9, host); no other address is better");
}

TEST_CASE("nodes that know one address of the first node reach it there, though its store has others") {
  Scene scene(2);
  CHECK(place_of_ranks(scene, {{}}) == "10.0.0.9");
  CHECK(warning_about_place(scene, 2) == "");
}

TEST_CASE("the nodes hear the addresses of the first one only if it has several") {
  for (const bool several : {false, true}) {
    const std::vector<std::string> addresses = {"10.0.0.9", "10.1.0.9"};
    CoordinatorOptions options = {
        .nodes = 2, .run_id = "run", .names = {}, .addresses = {"10.0.0.9"}, .restart = {}};
    if (several) options.addresses = addresses;
    Scene scene(options);
    for (const int rank : {0, 1}) scene.say(static_cast<PeerId>(rank) + 1, Scene::join(1, rank));
    REQUIRE(scene.last<Places>(2) != nullptr);
    CHECK(scene.last<Places>(2)->first_at == (several ? addresses : std::vector<std::string>()));
  }
}

}  // namespace
}  // namespace fleetrun::launch::place_for_ranks_test
