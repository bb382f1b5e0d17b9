#!/bin/bash
# build.sh [FOLDER]: builds rnn_parity and libcudnn_rnn_cpu.so in FOLDER (build/gpu) with g++ (or $CXX)
# alone. Neither TensorFlow nor anything of NVIDIA's is needed. JOBS: how many compilers at once.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-build/gpu}
mkdir -p "$out"
common=(-std=c++17 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -I.)

# The flags of a file, as in cc/sources.bzl.
flags_of() {
  case $1 in
    cc/cpu/kernels_avx2.cc) echo -O3 -ffp-contract=fast -mavx2 -mfma -mf16c ;;
    cc/cpu/kernels_avx512.cc)
      echo -O3 -ffp-contract=fast -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c ;;
    cc/cpu/*) echo -O3 -ffp-contract=fast ;;
  esac
}

case $(uname -m) in
  x86_64) other='kernels_neon.cc' ;;
  *) other='kernels_avx' ;;
esac

objects=() exports='' commands=$out/commands
: >"$commands"
for source in cc/cudnn/*.cc cc/rnn/*.cc cc/cpu/*.cc tests/gpu/*.cc; do
  [[ $source == *$other* ]] && continue
  object=$out/$(tr / _ <<<"${source%.cc}").o
  echo "${CXX:-g++} ${common[*]} $(flags_of "$source") -c $source -o $object" >>"$commands"
  if [[ $source == cc/cpu/cudnn_exports.cc ]]; then
    exports=$object
  else
    objects+=("$object")
  fi
done
xargs -P "${JOBS:-$(nproc)}" -I{} sh -c '{} || exit 255' <"$commands"

"${CXX:-g++}" "${objects[@]}" -ldl -pthread -o "$out/rnn_parity"
engine=()
for object in "${objects[@]}"; do [[ $object == */cc_* ]] && engine+=("$object"); done
"${CXX:-g++}" -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,-soname,libcudnn_rnn_cpu.so "$exports" \
  "${engine[@]}" -ldl -pthread -o "$out/libcudnn_rnn_cpu.so"
echo "built in $out"
