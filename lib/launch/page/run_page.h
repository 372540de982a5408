// The page of a run, log/report.html: one file of HTML without anything from elsewhere.
#pragma once
#include <string>

#include "launch/page/page_facts.h"

namespace fleetrun::launch {

std::string run_page(const PageFacts& facts);

// For `fleetrun watch` until a run has written its page.
std::string waiting_page(const std::string& folder);

}  // namespace fleetrun::launch
