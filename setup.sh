#!/usr/bin/env bash
# The set-up behind `make`: tools, virtual environment, pinned packages, build. Safe to interrupt and start again: each step
# that is done is skipped. `setup.sh <step>...` with steps: plan tools test_tools venv build.
#   PYTHON=...  an interpreter that already has torch: nothing is installed
#   SYSTEM=1    install missing Debian packages instead of stopping
set -u -o pipefail
cd "$(dirname "$0")"
mkdir -p build
VENV=.venv
STAMP=$VENV/.packages-$(cat requirements.txt requirements-dev.txt | sha256sum | cut -c1-12)

say() { printf '%s\n' "$*"; }
fail() {  # name, log, likely cause
  say "" "FAILED: $1" "  log: $2" "  likely cause: $3" >&2
  [ -f "$2" ] && { say "  its last lines:"; tail -n 15 "$2" | sed 's/^/    /'; } >&2
  exit 1
}

plan() {
  if [ -n "${PYTHON:-}" ]; then
    say "Uses $PYTHON and its torch; nothing is downloaded. Builds in build/ (about 100 MB, 2-4 minutes on two cores)."
  elif [ -f "$STAMP" ]; then
    say "Packages are installed in $VENV. Builds in build/ what changed."
  else
    say "Downloads about 2,950 MB from PyPI into $VENV (torch with its CUDA packages 2,700 MB; 6 GB of disk, 2-4 minutes) and builds in build/ (about 100 MB, 2-4 minutes on two cores)."
  fi
  local targets="host (compiler: ${CXX:-g++})"
  if [ -e /dev/nvidia0 ] || command -v nvidia-smi >/dev/null 2>&1; then targets="$targets, cuda"; else targets="$targets; no NVIDIA driver here, so CUDA kernels are compiled and emulated, not run"; fi
  say "Targets this machine can run: $targets"
}

need() {  # command or test, Debian package
  if eval "$1" >/dev/null 2>&1; then return; fi
  if [ "${SYSTEM:-}" = 1 ]; then
    say "installing $2"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $2; } >build/apt.log 2>&1 || fail "apt-get install $2" build/apt.log "no network or no rights"
  else
    say "Missing: $2. Bring it with:  sudo apt-get install -y $2" "(or start again with SYSTEM=1, which does that)" >&2
    exit 1
  fi
}

tools() {
  need "command -v ${CXX:-g++}" g++
  if [ -z "${PYTHON:-}" ]; then
    need "command -v python3" python3
    need "python3 -c 'import venv, ensurepip'" python3-venv
    need "python3 -c 'import sysconfig, os; assert os.path.exists(os.path.join(sysconfig.get_paths()[\"include\"], \"Python.h\"))'" python3-dev
  fi
}

# An interpreter of the user's own: Catch2 may be its environment's too, and CMake says so when it is not.
test_tools() { [ -n "${PYTHON:-}" ] || need "[ -d /usr/include/catch2 ] || [ -d /usr/local/include/catch2 ]" catch2; }

venv() {
  [ -n "${PYTHON:-}" ] && return
  [ -f "$STAMP" ] && return
  [ -x $VENV/bin/python ] || python3 -m venv $VENV >build/venv.log 2>&1 || fail "python3 -m venv $VENV" build/venv.log "python3-venv is missing or the disk is full"
  say "installing packages into $VENV"
  $VENV/bin/python -m pip install --disable-pip-version-check --progress-bar off -r requirements-dev.txt >build/pip.log 2>&1 ||
    fail "pip install -r requirements-dev.txt" build/pip.log "no network, or less than 6 GB of disk"
  touch "$STAMP"
}

interpreter() { if [ -n "${PYTHON:-}" ]; then command -v "$PYTHON"; else echo "$PWD/$VENV/bin/python"; fi; }

build() {
  local python cmake generator=()
  python=$(interpreter)
  [ -z "${PYTHON:-}" ] && export PATH="$PWD/$VENV/bin:$PATH"
  cmake=$(command -v cmake) || { say "Missing: cmake. Bring it with:  sudo apt-get install -y cmake" >&2; exit 1; }
  command -v ninja >/dev/null 2>&1 && generator=(-G Ninja)
  local launcher=()
  command -v ccache >/dev/null 2>&1 && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  "$cmake" -S . -B build "${generator[@]}" "${launcher[@]}" -DFXFUSER_PYTHON="$python" -DFXFUSER_CUDA="${FXFUSER_CUDA:-auto}" \
    -DFXFUSER_WERROR="${FXFUSER_WERROR:-OFF}" >build/configure.log 2>&1 || fail "cmake configure" build/configure.log "a missing tool or another torch than 2.11"
  grep -E "fxfuser:" build/configure.log | sed 's/^-- //'
  "$cmake" --build build -j "${JOBS:-$(nproc)}" >build/build.log 2>&1 || fail "cmake --build build" build/build.log "a compile error (see the log), or less than 3 GB of memory a core"
  say "built in build/"
}

for step in "$@"; do
  case $step in
    plan | tools | test_tools | venv | build | interpreter) "$step" ;;
    *) say "setup.sh: unknown step '$step'" >&2; exit 2 ;;
  esac
done
