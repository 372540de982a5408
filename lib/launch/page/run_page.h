// The page of a run, log/report.html: one file of HTML without anything from elsewhere.
#pragma once
#include <string>

#include "launch/page/page_facts.h"

namespace fleetrun::launch {

std::string run_page(const PageFacts& facts);

// The page of a run whose fleetrun was killed, so that nobody could write the end. A page that says how the run ended stays as it is.
std::string page_after_end(std::string page);

// For `fleetrun watch` until a run has written its page.
std::string waiting_page(const std::string& folder);

}  // namespace fleetrun::launch
