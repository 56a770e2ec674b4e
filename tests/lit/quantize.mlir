// RUN: weft opt %s --pipeline 'builtin.module(weft-quantize,canonicalize,cse)' | FileCheck %s
// RUN: weft opt %s | FileCheck %s --check-prefix=KERNEL
// Unsigned bytes with zero point 3 become signed ones with zero point -125, also in the padding. Products are those of
// bytes. What the zero point adds (125 times the sum of each filter's weights) and the bias, in steps of the product's
// scale, are one constant; the relu is where the bytes saturate. All of it is one kernel.

#nchw = affine_map<(n, c, y, x) -> (n, c, y, x)>
#c = affine_map<(n, c, y, x) -> (c)>
#oihw = affine_map<(f, c, i, j) -> (f, c, i, j)>
#f = affine_map<(f, c, i, j) -> (f)>
#window = affine_map<(n, f, y, x, c, i, j) -> (n, c, y + i, x + j)>
#weights = affine_map<(n, f, y, x, c, i, j) -> (f, c, i, j)>
#out = affine_map<(n, f, y, x, c, i, j) -> (n, f, y, x)>

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[SHIFT:.*]] = arith.constant dense<[2254, -2268]> : tensor<2xi32>
// CHECK-DAG: %[[SCALE:.*]] = arith.constant dense<[6.250000e-02, 1.250000e-01]> : tensor<2xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant -125 : i8
// CHECK: arith.fptosi %{{.*}} : f32 to i8
// CHECK: tensor.pad
// CHECK: tensor.yield %[[ZERO]] : i8
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<1x1x4x4xi8>, tensor<2x1x3x3xi8>)
// CHECK: arith.extsi
// CHECK: arith.muli
// CHECK: arith.addi
// CHECK: ins(%{{.*}}, %[[SHIFT]], %[[SCALE]] : tensor<1x2x2x2xi32>, tensor<2xi32>, tensor<2xf32>)
// CHECK: arith.addi
// CHECK-NEXT: arith.sitofp
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: math.roundeven
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: arith.minimumf
// CHECK-NEXT: arith.fptosi
// CHECK: arith.xori

// KERNEL: "weft.kernel"
// KERNEL: {name = "QuantizeLinear:in"}
// KERNEL: "weft.kernel"
// KERNEL: arith.muli
// KERNEL: math.roundeven
// KERNEL: {name = "Conv:c"}
// KERNEL-NOT: "weft.kernel"
func.func @main(%x: tensor<1x1x2x2xf32>) -> tensor<1x2x2x2xi8> {
  %zero = arith.constant 0.0 : f32
  %step = arith.constant 0.5 : f32
  %coarse = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  %top = arith.constant 255.0 : f32
  %w = arith.constant dense<[[[[1, 2, 3], [4, 5, 6], [-7, 8, -4]]], [[[1, -2, 3], [-4, 5, -6], [-7, -8, 0]]]]> : tensor<2x1x3x3xi8>
  %scales = arith.constant dense<[0.25, 0.5]> : tensor<2xf32>
  %bias = arith.constant dense<[0.5, -4.5]> : tensor<2xf32>
  %e0 = tensor.empty() : tensor<1x1x2x2xi8>
  %e1 = tensor.empty() : tensor<1x1x2x2xf32>
  %e2 = tensor.empty() : tensor<2x1x3x3xf32>
  %e3 = tensor.empty() : tensor<1x2x2x2xf32>
  %e4 = tensor.empty() : tensor<1x2x2x2xi8>
  %init = linalg.fill ins(%zero : f32) outs(%e3 : tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %q = linalg.generic {indexing_maps = [#nchw, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x1x2x2xf32>) outs(%e0 : tensor<1x1x2x2xi8>) {
  ^bb0(%a: f32, %o: i8):
    %s = arith.divf %a, %step : f32
    %r = math.roundeven %s : f32
    %z = arith.addf %r, %three : f32
    %l = arith.maximumf %z, %zero : f32
    %h = arith.minimumf %l, %top : f32
    %b = arith.fptoui %h : f32 to i8
    linalg.yield %b : i8
  } -> tensor<1x1x2x2xi8> loc("QuantizeLinear:in")
  %real = linalg.generic {indexing_maps = [#nchw, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%q : tensor<1x1x2x2xi8>) outs(%e1 : tensor<1x1x2x2xf32>) {
  ^bb0(%a: i8, %o: f32):
    %n = arith.uitofp %a : i8 to f32
    %z = arith.subf %n, %three : f32
    %r = arith.mulf %z, %step : f32
    linalg.yield %r : f32
  } -> tensor<1x1x2x2xf32>
  %weights = linalg.generic {indexing_maps = [#oihw, #f, #oihw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w, %scales : tensor<2x1x3x3xi8>, tensor<2xf32>) outs(%e2 : tensor<2x1x3x3xf32>) {
  ^bb0(%a: i8, %s: f32, %o: f32):
    %n = arith.sitofp %a : i8 to f32
    %r = arith.mulf %n, %s : f32
    linalg.yield %r : f32
  } -> tensor<2x1x3x3xf32>
  %p = tensor.pad %real low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x1x2x2xf32> to tensor<1x1x4x4xf32>
  %sum = linalg.generic {indexing_maps = [#window, #weights, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %weights : tensor<1x1x4x4xf32>, tensor<2x1x3x3xf32>) outs(%init : tensor<1x2x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x2x2x2xf32> loc("Conv:c")
  %biased = linalg.generic {indexing_maps = [#nchw, #c, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum, %bias : tensor<1x2x2x2xf32>, tensor<2xf32>) outs(%e3 : tensor<1x2x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x2x2x2xf32> loc("Conv:c")
  %relu = linalg.generic {indexing_maps = [#nchw, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%biased : tensor<1x2x2x2xf32>) outs(%e3 : tensor<1x2x2x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> tensor<1x2x2x2xf32> loc("Relu:r")
  %y = linalg.generic {indexing_maps = [#nchw, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%relu : tensor<1x2x2x2xf32>) outs(%e4 : tensor<1x2x2x2xi8>) {
  ^bb0(%a: f32, %o: i8):
    %s = arith.divf %a, %coarse : f32
    %r = math.roundeven %s : f32
    %l = arith.maximumf %r, %zero : f32
    %h = arith.minimumf %l, %top : f32
    %b = arith.fptoui %h : f32 to i8
    linalg.yield %b : i8
  } -> tensor<1x2x2x2xi8> loc("QuantizeLinear:out")
  return %y : tensor<1x2x2x2xi8>
}
