#pragma once
// The one C entry that the library exports, and what a loader checks before it trusts the table behind it.

#include "executor/interface/fxfuser.h"

#define FXFUSER_INTERFACE_VERSION "fxfuser-0.1.0/3"

struct fxfuser_entry {
  const char* interface_version;
  const char* torch_version;
  fxfuser::Service* (*service)();
};

extern "C" FXFUSER_API const fxfuser_entry* fxfuser_codegen_entry();
