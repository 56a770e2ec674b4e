// Models and operator cases with known answers, run through the reference. Needs the test data: WEFT_TEST_DATA, or
// ../shared/data beside the source.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka needs the above first
#include <cmocka.h>

#include "case.h"

static const char* const models[] = {"mnist", "cifar10_resnet_4b", "espcn_subpixel", "super_resolution"};
// One or more for each family and each way an operator can be asked.
static const char* const cases[] = {"test_add_bcast",
                                    "test_argmax_default_axis_example_select_last_index",
                                    "test_averagepool_2d_ceil",
                                    "test_averagepool_2d_pads_count_include_pad",
                                    "test_averagepool_2d_same_lower",
                                    "test_averagepool_2d_dilations",
                                    "test_averagepool_3d_default",
                                    "test_basic_conv_with_padding",
                                    "test_batchnorm_epsilon",
                                    "test_celu",
                                    "test_clip_example",
                                    "test_concat_3d_axis_negative_2",
                                    "test_conv_with_autopad_same",
                                    "test_conv_with_strides_and_asymmetric_padding",
                                    "test_convtranspose_output_shape",
                                    "test_convtranspose_3d",
                                    "test_depthtospace_crd_mode_example",
                                    "test_dequantizelinear_axis",
                                    "test_elu",
                                    "test_equal_bcast",
                                    "test_flatten_negative_axis1",
                                    "test_gather_2d_indices",
                                    "test_gather_elements_0",
                                    "test_gelu_tanh_1",
                                    "test_gemm_all_attributes",
                                    "test_globalmaxpool",
                                    "test_hardmax_axis_0",
                                    "test_hardswish",
                                    "test_instancenorm_epsilon",
                                    "test_layer_normalization_4d_axis2",
                                    "test_leakyrelu",
                                    "test_logsoftmax_axis_1",
                                    "test_lppool_2d_default",
                                    "test_lrn",
                                    "test_matmul_4d",
                                    "test_matmulinteger",
                                    "test_maxpool_1d_default",
                                    "test_maxpool_2d_ceil",
                                    "test_maxpool_2d_uint8",
                                    "test_maxpool_3d_default",
                                    "test_mish",
                                    "test_mod_broadcast",
                                    "test_mod_mixed_sign_float32",
                                    "test_pow_bcast_array",
                                    "test_prelu_broadcast",
                                    "test_qlinearmatmul_2D_uint8_float32",
                                    "test_quantizelinear_axis",
                                    "test_reduce_max_default_axes_keepdim_example",
                                    "test_rms_normalization_2d_axis0",
                                    "test_selu",
                                    "test_shrink_soft",
                                    "test_softmax_axis_0",
                                    "test_softplus",
                                    "test_spacetodepth",
                                    "test_split_equal_parts_1d_opset13",
                                    "test_swish",
                                    "test_transpose_all_permutations_4",
                                    "test_where_long_example"};

static const char* data_folder(char buffer[512]) {
  const char* given = getenv("WEFT_TEST_DATA");
  snprintf(buffer, 512, "%s", given ? given : WEFT_SOURCE_DIR "/../shared/data");
  return access(buffer, R_OK) == 0 ? buffer : NULL;
}

static void run_all(const char* kind, size_t count, const char* const* names) {
  char buffer[512], folder[1024];
  const char* data = data_folder(buffer);
  if (!data) {
    print_message("skipped: no test data in %s; set WEFT_TEST_DATA\n", buffer);
    skip();
  }
  int failures = 0;
  for (size_t i = 0; i < count; ++i) {
    snprintf(folder, sizeof(folder), "%s/%s/%s", data, kind, names[i]);
    case_report_t report = run_case(folder, 1e-3, 1e-4, false);
    if (report.result == CASE_MATCH) continue;
    print_error("%s: %s\n", names[i], report.message);
    ++failures;
  }
  assert_int_equal(failures, 0);
}

static void test_models(void** state) {
  (void)state;
  run_all("models", sizeof(models) / sizeof(models[0]), models);
}

static void test_operators(void** state) {
  (void)state;
  run_all("onnx-conformance/node", sizeof(cases) / sizeof(cases[0]), cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_operators), cmocka_unit_test(test_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
