// What `fleetrun watch` answers: the page of a run and the files in its log folder, to whom knows the token.
#pragma once
#include <string>

#include "launch/serve/http_server.h"

namespace fleetrun::launch {

// Fresh, 32 hexadecimal digits. Throws Error(os).
std::string make_page_token();

// Of "/TOKEN/" the page, of "/TOKEN/workerlog.0" the end of that file; 403 without the token, 404 for what no run shows, or
// what is not there.
HttpAnswer answer_watcher(const std::string& path, const std::string& token, const std::string& folder);

}  // namespace fleetrun::launch
