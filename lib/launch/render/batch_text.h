// Building blocks of the files: templates, comments, and words as YAML and systemd read them. launch/cli/flags/shell_words.h quotes words
// for shells.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launch {

// Puts values in place of their names: <<name>>. A line that has nothing but the name of an empty value disappears. A value may have
// several lines; the name on a line of its own stands for whole lines. Throws Error(internal) for a name without a value.
using Values = std::map<std::string, std::string, std::less<>>;
std::string fill(std::string_view text, const Values& values);

// Each line of the text as a comment: whatever it says, no reader of the file takes it for more.
std::string as_comment(const std::string& text);

// In double quotes, as a YAML flow scalar. Throws Error(usage) for bytes that are not UTF-8.
std::string quote_yaml(const std::string& text);

// The same for a word of `command` or `args` in Kubernetes, which replaces $(NAME) and takes $$ for $.
std::string quote_container_word(const std::string& text);

// A word of ExecStart= in a unit of systemd. Throws Error(usage) for a NUL or bytes that are not UTF-8.
std::string quote_exec_word(const std::string& text);

std::string hours_minutes_seconds(std::chrono::seconds time);       // "26:00:05"
std::string days_hours_minutes_seconds(std::chrono::seconds time);  // "1-02:00:05"

}  // namespace fleetrun::launch
