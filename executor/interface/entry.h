#pragma once
// The one C entry that the library exports, and what a loader checks before it trusts the table behind it.

#include "executor/interface/fxfuser.h"

#define FXFUSER_INTERFACE_VERSION "fxfuser-0.1.0/4"

/// What of the C++ library both sides must have been compiled with.
#define FXFUSER_ABI_TEXT_OF(value) #value
#define FXFUSER_ABI_TEXT(value) FXFUSER_ABI_TEXT_OF(value)
#define FXFUSER_ABI "_GLIBCXX_USE_CXX11_ABI=" FXFUSER_ABI_TEXT(_GLIBCXX_USE_CXX11_ABI)

struct fxfuser_entry {
  const char* interface_version;  // first: what follows may differ in another version
  const char* torch_version;
  const char* abi;
  fxfuser::Service* (*service)();
};

extern "C" FXFUSER_API const fxfuser_entry* fxfuser_codegen_entry();
