// A shared library that the loader does not find: see needs_library.cpp.
int from_library();
int from_library() { return 0; }
