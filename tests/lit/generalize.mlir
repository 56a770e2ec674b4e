// RUN: weft opt %s --pipeline 'builtin.module(weft-generalize)' | FileCheck %s
// RUN: weft opt %s | FileCheck %s --check-prefix=DEFAULT
// Named ops become generics, so that the default pipeline takes any linalg on tensors.

// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg.matmul
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// DEFAULT: "weft.kernel"
// DEFAULT: {name = "Gemm:g"}
func.func @main(%x: tensor<3x5xf32>, %w: tensor<5x2xf32>) -> tensor<3x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %r = linalg.matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x2xf32>) outs(%init : tensor<3x2xf32>) -> tensor<3x2xf32> loc("Gemm:g")
  return %r : tensor<3x2xf32>
}
