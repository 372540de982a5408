// A library that is not a plug-in.
int not_a_plugin() { return 0; }
