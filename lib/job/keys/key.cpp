#include "job/keys/key.h"

#include <algorithm>

namespace fleetrun::job {
namespace {

void visit_members(const Key& parent, const std::string& path, const KeyVisitor& visit) {
  for (const Key& key : parent.members) {
    const std::string below = child_path(path, key.name);
    visit(below, key);
    visit_members(key, below, visit);
  }
}

}  // namespace

const Key* Key::find(std::string_view member) const {
  const auto found =
      std::find_if(members.begin(), members.end(), [member](const Key& key) { return key.name == member; });
  return found == members.end() ? nullptr : &*found;
}

const Key* find_key(const Key& root, std::string_view path) {
  const std::size_t dot = path.find('.');
  const Key* key = root.find(path.substr(0, dot));
  return key == nullptr || dot == std::string_view::npos ? key : find_key(*key, path.substr(dot + 1));
}

void for_each_key(const Key& root, const KeyVisitor& visit) { visit_members(root, "", visit); }

}  // namespace fleetrun::job
