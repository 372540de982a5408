// What a test keeps for the next run on this host is kept in a folder that goes with it, never in the user's.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

#include "support/temporary_folder.h"

int main(int count, char** words) {
  const fleetrun::TemporaryFolder cache;
  ::setenv("FLEETRUN_CACHE_DIR", cache.path().c_str(), 1);
  return doctest::Context(count, words).run();
}
