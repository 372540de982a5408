// What the page of a run needs in its head: how it looks, and the little that it does.
#pragma once
#include <string>

namespace fleetrun::launch {

// <meta>, <style>: nothing is loaded from elsewhere.
std::string page_head(const std::string& title);

// Shows the values under the pointer. Under `fleetrun watch` it also brings the page up to date; opened as a file, the page of a
// run that goes on loads itself again.
std::string page_script();

}  // namespace fleetrun::launch
