#!/bin/sh
# Compiles and simulates a model on machines of growing size; prints a table line each.
# usage: bench/compile.sh WEFT MODEL_DIR 'NAMES OF INPUTS' 'NAMES OF OUTPUTS' 'COMPILE OPTIONS' MACHINE...
# MODEL_DIR holds model.onnx and test_data_set_0/{input,output}_*.pb. Example:
#   bench/compile.sh build/weft resnet50 x y '--dim n=1' mesh:160x160 'wse2 --defects rate=0.015,seed=7'
set -eu
weft=$1 model=$2 inputs=$3 outputs=$4 options=$5
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arguments='' i=0
for name in $inputs; do arguments="$arguments --input $name=$model/test_data_set_0/input_$i.pb" i=$((i + 1)); done
i=0
for name in $outputs; do arguments="$arguments --expect $name=$model/test_data_set_0/output_$i.pb" i=$((i + 1)); done
echo "$model: machine | seconds: import passes kernels place route emit | MB | tiles | slowest kernel | run"
for machine in "$@"; do
  # shellcheck disable=SC2086 # options are words
  "$weft" compile "$model/model.onnx" $options --machine $machine -o "$work/image" --report "$work/report" --quiet
  stages=$(sed -n 's/.*"seconds": \([0-9.]*\).*/\1/p' "$work/report" | cut -c1-6 | tr '\n' ' ')
  peak=$(sed -n 's/.*"peak_bytes": \([0-9]*\).*/\1/p' "$work/report" | tail -1)
  tiles=$(sed -n 's/.*"tiles_used": \([0-9]*\).*/\1/p' "$work/report")
  slowest=$(sed -n 's/.*"slowest_kernel_cycles": \([0-9]*\).*/\1/p' "$work/report")
  # shellcheck disable=SC2086
  result=$("$weft" run "$work/image" $arguments 2>&1 | grep -v '^simulate:' | sed 's/ inputs in \([0-9]*\) cycles:.*simulated in/ in \1 cycles, simulated in/' | cut -c1-90 | paste -sd ';')
  echo "$machine | $stages| $((peak / 1000000)) | $tiles | $slowest | $result"
done
