// The page of a run, log/report.html: one file of HTML without anything from elsewhere.
#pragma once
#include <string>

#include "launch/page/page_facts.h"

namespace fleetrun::launch {

std::string run_page(const PageFacts& facts);

// Adds to the last page of a run that fleetrun was killed before it could write the end. Does not change a page that has the end.
std::string page_after_end(std::string page);

// For `fleetrun watch` until a run has written its page.
std::string waiting_page(const std::string& folder);

}  // namespace fleetrun::launch
