// Serves what oneDNN allocates while it runs a primitive from memory that is used again and again.
//
// dnnl_primitive_execute (2.6) builds a map of its arguments and small objects with operator new in every
// call: 5 to 10 blocks of 24 to 200 bytes, all freed before it returns. A step is to allocate nothing, so
// this library replaces the global operator new. Inside a scope, on the thread that opened it, blocks come
// from chunks of one fixed range of addresses; everywhere else it is malloc. operator delete tells the two
// apart by the address. A chunk counts its live blocks: when none is left its owner starts it anew, so a
// block may outlive the scope or be freed by another thread. With address or thread sanitizer, which bring
// an operator new of their own, a scope does nothing.
#pragma once

namespace fleetrun::runtime::cpu {

class PrimitiveScope {
 public:
  PrimitiveScope();
  ~PrimitiveScope();
  PrimitiveScope(const PrimitiveScope&) = delete;
  PrimitiveScope& operator=(const PrimitiveScope&) = delete;
};

}  // namespace fleetrun::runtime::cpu
