// What other libraries throw, as an Error.
#pragma once
#include <exception>

#include "base/error/error.h"

namespace fleetrun {

// Error(os) when memory ran out or a thread could not start, otherwise Error(internal) with the words of the exception.
Error error_of_library(const std::exception& exception);

}  // namespace fleetrun
