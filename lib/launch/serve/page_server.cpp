#include "launch/serve/page_server.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/run/run_key.h"
#include "launch/logs/last_lines.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/log_names.h"
#include "launch/page/run_page.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kTokenBytes = 16;
constexpr std::size_t kMostShown = std::size_t{8} << 20;  // bytes of a file; of a log its end

// Nobody else may show the page inside another one, or learn its address.
constexpr const char* kHeaders =
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n";

// Takes as long for every wrong token of that length.
bool is_token(std::string_view given, const std::string& token) {
  if (given.size() != token.size()) return false;
  unsigned differences = 0;
  for (std::size_t i = 0; i < token.size(); ++i)
    differences |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(token[i]);
  return differences == 0;
}

// Only a regular file is read, since a link may lead anywhere. None: there is no such file.
std::optional<std::string> read_shown(const std::string& path) {
  std::error_code problem;
  const bool regular =
      std::filesystem::symlink_status(path, problem).type() == std::filesystem::file_type::regular;
  return regular ? std::optional(read_log_end(LogFile(path), kMostShown)) : std::nullopt;
}

HttpAnswer page_of(const std::string& folder) {
  HttpAnswer answer = {.type = "text/html; charset=utf-8", .headers = kHeaders};
  const bool was_in_use = is_in_use(folder);
  answer.body = read_shown(folder + "/" + kPageName).value_or("");
  if (answer.body.empty())
    answer.body = waiting_page(folder);
  else if (!was_in_use && !is_in_use(folder))  // neither has it just ended, nor just begun
    answer.body = page_after_end(std::move(answer.body));
  return answer;
}

}  // namespace

std::string make_page_token() {
  std::string token;
  const Nonce nonce = make_nonce();
  for (std::size_t i = 0; i < kTokenBytes; ++i) token += fmt::format("{:02x}", nonce[i]);
  return token;
}

HttpAnswer answer_watcher(const std::string& path, const std::string& token, const std::string& folder) {
  const std::size_t slash = path.find('/', 1);
  if (path.empty() ||
      !is_token(std::string_view(path).substr(1, slash == std::string::npos ? slash : slash - 1), token))
    return {.status = "403 Forbidden",
            .body = "the address needs the token that fleetrun watch printed\n",
            .headers = kHeaders};
  if (slash == std::string::npos)  // links are relative to the folder
    return {.status = "308 Permanent Redirect",
            .body = "",
            .headers = fmt::format("Location: /{}/\r\n{}", token, kHeaders)};
  const std::string name = path.substr(slash + 1);
  if (name.empty() || name == kPageName) return page_of(folder);
  const std::optional<std::string> content = is_shown(name) ? read_shown(folder + "/" + name) : std::nullopt;
  if (!content) return {.status = "404 Not Found", .body = "no file of a run\n", .headers = kHeaders};
  return {.body = *content, .headers = kHeaders};
}

}  // namespace fleetrun::launch
