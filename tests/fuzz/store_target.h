// What is tried on the store: any bytes as a message, and any sequence of messages by strangers and by ranks that
// hold the key. What must hold whatever comes is checked; the first breach ends the process with the bytes named.
#pragma once
#include <string_view>

namespace fleetrun::fuzz {

// The bytes as the content of one frame: a message that comes back as it was written, or none.
void try_message(std::string_view bytes);

// The bytes as orders, read one after the other: who connects, what is said, who leaves.
void try_conversation(std::string_view bytes);

}  // namespace fleetrun::fuzz
