#include "base/text/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace fleetrun {
namespace {

constexpr const char* kRedacted = "***";

// Parts of names between underscores, and ends of such parts (APIKEY, AUTHTOKEN).
constexpr std::array<std::string_view, 10> kSecretWords = {
    "KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE", "CREDENTIALS", "AUTH", "COOKIE"};

bool is_secret_word(std::string word) {
  for (char& letter : word) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  if (word.ends_with('S') && !word.ends_with("PASS") && !word.ends_with("CREDENTIALS")) word.pop_back();
  return std::any_of(kSecretWords.begin(), kSecretWords.end(),
                     [&](std::string_view secret) { return word.ends_with(secret); });
}

bool names_a_secret(const std::string& name) {
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find('_', start), name.size());
    if (is_secret_word(name.substr(start, end - start))) return true;
    start = end + 1;
  }
  return false;
}

// "https://user:word@host" without the word.
std::string without_password(const std::string& value) {
  constexpr std::string_view kStart = "://", kEndOfUser = "/@: \t\n\v\f\r", kEndOfWord = "/@ \t\n\v\f\r";
  std::string text;
  std::size_t copied = 0;
  for (std::size_t at = value.find(kStart); at != std::string::npos; at = value.find(kStart, at + 1)) {
    const std::size_t colon = value.find_first_of(kEndOfUser, at + kStart.size());
    if (colon == std::string::npos || value[colon] != ':') continue;
    const std::size_t end = value.find_first_of(kEndOfWord, colon + 1);
    if (end == std::string::npos || value[end] != '@' || end == colon + 1) continue;
    text += value.substr(copied, colon + 1 - copied) + kRedacted;
    copied = end;
  }
  return copied == 0 ? value : text + value.substr(copied);
}

}  // namespace

std::string redact(const std::string& name, const std::string& value) {
  return names_a_secret(name) ? kRedacted : without_password(value);
}

std::string redact_setting(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos) return setting;
  const std::size_t colon = setting.find(':');
  const std::size_t start = colon < equals ? colon + 1 : 0;
  const std::string name = setting.substr(start, equals - start);
  return setting.substr(0, equals + 1) + redact(name, setting.substr(equals + 1));
}

}  // namespace fleetrun
