// Libraries that are not the one that is looked for: one source, built once for each difference.

#ifdef FXF_FOREIGN

extern "C" __attribute__((visibility("default"))) int some_other_entry() { return 0; }

#else

#include <torch/version.h>

#include "executor/interface/entry.h"

#ifndef FXF_FAKE_INTERFACE
#define FXF_FAKE_INTERFACE FXFUSER_INTERFACE_VERSION
#endif
#ifndef FXF_FAKE_TORCH
#define FXF_FAKE_TORCH TORCH_VERSION
#endif
#ifndef FXF_FAKE_ABI
#define FXF_FAKE_ABI FXFUSER_ABI
#endif

extern "C" FXFUSER_API const fxfuser_entry* fxfuser_codegen_entry() {
  static const fxfuser_entry entry{FXF_FAKE_INTERFACE, FXF_FAKE_TORCH, FXF_FAKE_ABI, []() -> fxfuser::Service* { return nullptr; }};
  return &entry;
}

#endif
