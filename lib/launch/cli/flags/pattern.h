// A regular expression that a user gives, in the syntax of RE2: a match takes time in proportion to the text, whatever the
// pattern and the text are.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace fleetrun::launch {

class Pattern {
 public:
  // Throws Error(usage) that says what is wrong with it and where. `source` is the flag, "--grep".
  Pattern(const std::string& source, const std::string& text);

  bool is_in(std::string_view line) const;

 private:
  std::shared_ptr<const re2::RE2> engine_;  // shared: options are copied, and RE2 cannot be
};

}  // namespace fleetrun::launch
