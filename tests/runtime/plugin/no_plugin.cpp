// A library that is no plug-in.
int not_a_plugin() { return 0; }
