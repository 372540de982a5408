// A program that cannot start for want of a shared library.
int from_library();
int main() { return from_library(); }
