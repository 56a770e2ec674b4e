// RUN: not weft opt %s --pipeline 'builtin.module(weft-form-carnels)' 2>&1 | FileCheck %s
// CHECK: weft-form-carnels
func.func @main() {
  return
}
