// RUN: weft opt %s --pipeline 'builtin.module(weft-narrow-f16,canonicalize,cse)' | FileCheck %s
// RUN: weft opt %s --pipeline 'builtin.module(weft-narrow-bf16,canonicalize,cse)' | FileCheck %s --check-prefix=BF16
// Two products in a row. Weights are rounded at once, a result where it is made and before it moves; sums stay in f32.
// What is added to a rounded tensor reads it rounded. Weights that f16 cannot hold keep their product in f32.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#swap = affine_map<(m, n) -> (n, m)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<2x2xf32>
// CHECK-DAG: %[[WIDE:.*]] = arith.constant dense<{{.*}}1.000000e+05{{.*}}> : tensor<2x2xf32>
// CHECK-DAG: %[[W:.*]] = arith.constant dense<{{.*}}5.000000e-01{{.*}}> : tensor<2x2xf16>
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[W]] : tensor<2x2xf16>, tensor<2x2xf16>) outs(%{{.*}} : tensor<2x2xf32>)
// CHECK-COUNT-2: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: arith.maximumf
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: ins(%{{.*}} : tensor<2x2xf16>) outs(%{{.*}} : tensor<2x2xf16>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: linalg.yield
// CHECK: ins(%{{.*}}, %[[W]] : tensor<2x2xf16>, tensor<2x2xf16>) outs(%{{.*}} : tensor<2x2xf32>)
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<2x2xf32>, tensor<2x2xf16>)
// CHECK: arith.extf
// CHECK: arith.addf
// CHECK: ins(%{{.*}}, %[[WIDE]] : tensor<2x2xf32>, tensor<2x2xf32>)
// BF16: tensor<2x2xbf16>
// BF16-NOT: tensor<2x2xf32>, tensor<2x2xf32>
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[0.5, 0.25], [1.0, 2.0]]> : tensor<2x2xf32>
  %wide = arith.constant dense<[[1.0e5, 1.0], [1.0, 1.0]]> : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %i, %zero : f32
    linalg.yield %m : f32
  } -> tensor<2x2xf32>
  %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
    ins(%r : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<2x2xf32>
  %q = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%t, %w : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%q, %r : tensor<2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  %z = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%d, %wide : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  return %z : tensor<2x2xf32>
}
