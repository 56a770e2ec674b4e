# shellcheck shell=sh
# For the programs of this folder; sourced.

# onnxruntime-node, in a folder of its own: a dependency of measurements only. WEFT_ORT names one that has it already.
find_reference() { # FOLDER
  if [ -z "${WEFT_ORT:-}" ]; then
    WEFT_ORT=$1
    ONNXRUNTIME_NODE_INSTALL=skip npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$WEFT_ORT" \
      onnxruntime-node@1.30.0 >/dev/null || return 1
  fi
  export NODE_PATH="$WEFT_ORT/node_modules"
}

# The options that give weft a folder's inputs and expected outputs, one a line, numbered as in the folder.
data_options() { # FOLDER input|output
  option=--input
  [ "$2" = input ] || option=--expect
  index=0
  while [ -f "$1/$2_$index.pb" ] || [ -f "$1/$2_$index.npy" ]; do
    file=$1/$2_$index.pb
    [ -f "$file" ] || file=$1/$2_$index.npy
    printf '%s\n#%d=%s\n' $option $index "$file"
    index=$((index + 1))
  done
}

# A field of a report: the last of that name.
field() { # FILE NAME
  sed -n "s/.*\"$2\": *\([-0-9.e]*\).*/\1/p" "$1" | tail -n 1
}

median() { # of the numbers in standard input
  sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}
