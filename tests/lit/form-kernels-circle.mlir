// RUN: weft opt %s --pipeline 'builtin.module(weft-form-kernels)' | FileCheck %s
// The sum reads %a's kernel directly and through the window of another one: it can only join the later kernel. What it adds
// to is needed outside as well, in another type, so that kernel has two results of different types.

#x = affine_map<(i) -> (i)>
#w = affine_map<(i, j) -> (i + j)>
#j = affine_map<(i, j) -> (j)>
#o = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK: %[[FIRST:.*]]:2 = "weft.mixed_kernel"() ({
// CHECK:   math.exp
// CHECK:   arith.truncf
// CHECK: }) {name = "Exp:a"
// CHECK: tensor.pad %[[FIRST]]#0
// CHECK: %[[SECOND:.*]] = "weft.kernel"() ({
// CHECK:   ins(%padded
// CHECK:   arith.addf
// CHECK:   ins(%[[FIRST]]#0
// CHECK:   arith.subf
// CHECK: }) {name = "AveragePool:b"}
// CHECK: return %[[SECOND]], %[[FIRST]]#1
func.func @main(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %h = tensor.empty() : tensor<16xf16>
  %window = tensor.empty() : tensor<3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %a = linalg.generic {indexing_maps = [#x, #x], iterator_types = ["parallel"]}
      ins(%x : tensor<16xf32>) outs(%e : tensor<16xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<16xf32> loc("Exp:a")
  %padded = tensor.pad %a low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<16xf32> to tensor<18xf32>
  %b = linalg.generic {indexing_maps = [#w, #j, #o], iterator_types = ["parallel", "reduction"]}
      ins(%padded, %window : tensor<18xf32>, tensor<3xf32>) outs(%init : tensor<16xf32>) {
  ^bb0(%p: f32, %unused: f32, %acc: f32):
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<16xf32> loc("AveragePool:b")
  %c = linalg.generic {indexing_maps = [#x, #x, #x], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.subf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<16xf32> loc("Sub:c")
  %d = linalg.generic {indexing_maps = [#x, #x], iterator_types = ["parallel"]}
      ins(%a : tensor<16xf32>) outs(%h : tensor<16xf16>) {
  ^bb0(%p: f32, %o: f16):
    %s = arith.truncf %p : f32 to f16
    linalg.yield %s : f16
  } -> tensor<16xf16> loc("Cast:d")
  return %c, %d : tensor<16xf32>, tensor<16xf16>
}
