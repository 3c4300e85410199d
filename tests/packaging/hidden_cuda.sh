#!/usr/bin/env bash
# Compiles the two units that include cuda.h and nvrtc.h with every CUDA toolkit of the system hidden and FXFUSER_CUDA=wheel.
#   hidden_cuda.sh <python> <empty build folder>
# Exit status 77: this machine can't hide its toolkits, or has no ninja.
set -eu
if [ "${1:-}" != --hidden ]; then
  unshare -rm true 2>/dev/null || { echo "no user namespaces: CUDA toolkits can't be hidden"; exit 77; }
  exec unshare -rm "$0" --hidden "$@"
fi
python=$2 build=$3 source=$(cd "$(dirname "$0")/../.." && pwd)

for folder in $(readlink -f /usr/local/cuda* /opt/cuda* /usr/lib/cuda 2>/dev/null | sort -u); do
  if [ -d "$folder" ]; then mount -t tmpfs none "$folder"; fi
done
unset CPATH CPLUS_INCLUDE_PATH C_INCLUDE_PATH CUDA_PATH CUDA_HOME CUDAToolkit_ROOT CUDACXX
for header in cuda.h nvrtc.h; do
  if echo "#include <$header>" | ${CXX:-g++} -E -x c++ - >/dev/null 2>&1; then echo "the compiler still finds $header"; exit 77; fi
done

command -v ninja >/dev/null || { echo "ninja is missing"; exit 77; }
cmake -S "$source" -B "$build" -G Ninja -DFXFUSER_PYTHON="$python" -DFXFUSER_CUDA=wheel -DFXFUSER_WERROR=ON -DFXFUSER_BUILD_TESTS=OFF -DFXFUSER_BUILD_PYTHON=OFF
cmake --build "$build" --target executor/CMakeFiles/fxf_executor.dir/driver_api.cpp.o codegen/CMakeFiles/fxf_codegen.dir/cuda/nvrtc.cpp.o
