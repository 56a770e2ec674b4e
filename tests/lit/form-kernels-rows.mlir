// RUN: weft opt %s --pipeline 'builtin.module(weft-form-kernels,canonicalize,cse)' | FileCheck %s
// A row that fits a tile stays in one kernel, the reshape by an extent of 1 inside it; a row that doesn't fit makes two.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK: %[[SHORT:.*]] = "weft.kernel"() ({
// CHECK:   tensor<4x64xf32>
// CHECK:   arith.maximumf
// CHECK:   arith.subf
// CHECK: }) {name = "Max:short"}
// CHECK: %[[LONG:.*]] = "weft.kernel"() ({
// CHECK:   arith.maximumf
// CHECK:   vector.yield %{{[^ ,]*}} : tensor<4xf32>
// CHECK: }) {name = "Max:long"}
// CHECK: %[[REST:.*]] = "weft.kernel"() ({
// CHECK:   ins(%{{[^ ,]*}}, %[[LONG]]
// CHECK:   arith.subf
// CHECK: }) {name = "Sub:long"}
// CHECK-NEXT: return %[[SHORT]], %[[REST]]
func.func @main(%x: tensor<4x64xf32>, %y: tensor<4x4096xf32>) -> (tensor<4x64xf32>, tensor<4x4096xf32>) {
  %lowest = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %e0 = tensor.empty() : tensor<4x64xf32>
  %m0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.maximumf %a, %acc : f32
    linalg.yield %s : f32
  } -> tensor<4xf32> loc("Max:short")
  %kept = tensor.expand_shape %m0 [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  %r0 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i, 0)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %kept : tensor<4x64xf32>, tensor<4x1xf32>) outs(%e0 : tensor<4x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x64xf32> loc("Sub:short")
  %e1 = tensor.empty() : tensor<4x4096xf32>
  %m1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<4x4096xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.maximumf %a, %acc : f32
    linalg.yield %s : f32
  } -> tensor<4xf32> loc("Max:long")
  %r1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %m1 : tensor<4x4096xf32>, tensor<4xf32>) outs(%e1 : tensor<4x4096xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x4096xf32> loc("Sub:long")
  return %r0, %r1 : tensor<4x64xf32>, tensor<4x4096xf32>
}
