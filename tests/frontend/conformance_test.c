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
                                    "test_averagepool_2d_dilations",
                                    "test_averagepool_2d_pads_count_include_pad",
                                    "test_averagepool_2d_same_lower",
                                    "test_averagepool_3d_default",
                                    "test_basic_conv_with_padding",
                                    "test_basic_deform_conv_with_padding",
                                    "test_batchnorm_epsilon",
                                    "test_bitcast_float32_to_int32",
                                    "test_cast_FLOAT_to_FLOAT8E5M2",
                                    "test_cast_no_saturate_FLOAT_to_FLOAT8E4M3FN",
                                    "test_causal_conv_with_state_silu_with_past_state",
                                    "test_celu",
                                    "test_clip_example",
                                    "test_compress_negative_axis",
                                    "test_concat_3d_axis_negative_2",
                                    "test_conv_with_autopad_same",
                                    "test_conv_with_strides_and_asymmetric_padding",
                                    "test_convtranspose_3d",
                                    "test_convtranspose_output_shape",
                                    "test_deform_conv_with_multiple_offset_groups",
                                    "test_depthtospace_crd_mode_example",
                                    "test_dequantizelinear_axis",
                                    "test_dft_opset19",
                                    "test_dft_rfft_opset19",
                                    "test_einsum_batch_diagonal",
                                    "test_elu",
                                    "test_equal_bcast",
                                    "test_flatten_negative_axis1",
                                    "test_gather_2d_indices",
                                    "test_gather_elements_0",
                                    "test_gathernd_example_int32_batch_dim1",
                                    "test_gelu_tanh_1",
                                    "test_gemm_all_attributes",
                                    "test_globalmaxpool",
                                    "test_gridsample_bicubic",
                                    "test_gridsample_reflection_padding",
                                    "test_gridsample_volumetric_nearest_align_corners_0",
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
                                    "test_maxpool_with_argmax_2d_precomputed_pads",
                                    "test_maxpool_with_argmax_2d_precomputed_strides",
                                    "test_mish",
                                    "test_mod_broadcast",
                                    "test_mod_mixed_sign_float32",
                                    "test_nllloss_NCd1d2_with_weight_reduction_mean",
                                    "test_nllloss_NCd1d2d3_none_no_weight_negative_ii",
                                    "test_nonzero_example",
                                    "test_pow_bcast_array",
                                    "test_pow_types_int64_int64",
                                    "test_prelu_broadcast",
                                    "test_qlinearmatmul_2D_uint8_float32",
                                    "test_quantizelinear_axis",
                                    "test_reduce_max_default_axes_keepdim_example",
                                    "test_reversesequence_batch",
                                    "test_rms_normalization_2d_axis0",
                                    "test_roialign_aligned_true",
                                    "test_scatter_elements_with_negative_indices",
                                    "test_scatter_elements_with_reduction_min",
                                    "test_scatternd",
                                    "test_scatternd_multiply",
                                    "test_sce_NCd1d2d3_sum_weight_high_ii_log_prob",
                                    "test_sce_mean_weight_log_prob",
                                    "test_selu",
                                    "test_shrink_soft",
                                    "test_softmax_axis_0",
                                    "test_softplus",
                                    "test_spacetodepth",
                                    "test_split_equal_parts_1d_opset13",
                                    "test_swish",
                                    "test_tensorscatter_circular",
                                    "test_tfidfvectorizer_tf_batch_uniandbigrams_skip5",
                                    "test_transpose_all_permutations_4",
                                    "test_where_long_example",
                                    "test_attention_3d_gqa_softcap",
                                    "test_attention_4d_diff_heads_mask4d_padded_kv",
                                    "test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal",
                                    "test_cast_FLOAT_to_INT4",
                                    "test_convinteger_with_padding",
                                    "test_dequantizelinear_blocked",
                                    "test_det_nd",
                                    "test_dynamicquantizelinear",
                                    "test_einsum_batch_diagonal",
                                    "test_einsum_batch_matmul",
                                    "test_if",
                                    "test_linear_attention_gated_delta_gqa",
                                    "test_qlinearconv",
                                    "test_quantizelinear_blocked_asymmetric",
                                    "test_quantizelinear_int4",
                                    "test_rotary_embedding_with_interleaved_rotary_dim",
                                    "test_scan9_multi_state",
                                    "test_scan_sum"};

// Parameters among their inputs, or all inputs, have to be constant.
static const char* const bound_cases[] = {"test_affine_grid_3d",
                                          "test_center_crop_pad_crop_axes_hwc",
                                          "test_col2im_5d",
                                          "test_col2im_dilations",
                                          "test_cumprod_1d_reverse_exclusive",
                                          "test_dft_irfft",
                                          "test_hammingwindow_symmetric",
                                          "test_maxunpool_export_with_output_shape",
                                          "test_melweightmatrix",
                                          "test_nonmaxsuppression_center_point_box_format",
                                          "test_nonmaxsuppression_two_classes",
                                          "test_resize_downsample_scales_cubic_antialias",
                                          "test_resize_downsample_sizes_nearest_not_larger",
                                          "test_resize_tf_crop_and_resize_extrapolation_value",
                                          "test_stft_with_window",
                                          "test_top_k_same_values_2d",
                                          "test_unique_not_sorted_without_axis",
                                          "test_unique_sorted_with_negative_axis"};

static const char* data_folder(char buffer[512]) {
  const char* given = getenv("WEFT_TEST_DATA");
  snprintf(buffer, 512, "%s", given ? given : WEFT_SOURCE_DIR "/../shared/data");
  return access(buffer, R_OK) == 0 ? buffer : NULL;
}

static void run_all(const char* kind, size_t count, const char* const* names, case_bind_e least, case_bind_e most) {
  char buffer[512], folder[1024];
  const char* data = data_folder(buffer);
  if (!data) {
    print_message("skipped: no test data in %s; set WEFT_TEST_DATA\n", buffer);
    skip();
  }
  int failures = 0;
  for (size_t i = 0; i < count; ++i) {
    snprintf(folder, sizeof(folder), "%s/%s/%s", data, kind, names[i]);
    case_report_t report = {.result = CASE_UNSUPPORTED};
    for (case_bind_e bind = least; report.result == CASE_UNSUPPORTED && bind <= most; ++bind)
      report = run_case(folder, 1e-3, 1e-4, bind);
    if (report.result == CASE_MATCH) continue;
    print_error("%s: %s\n", names[i], report.message);
    ++failures;
  }
  assert_int_equal(failures, 0);
}

static void test_models(void** state) {
  (void)state;
  run_all("models", sizeof(models) / sizeof(models[0]), models, BIND_NOTHING, BIND_NOTHING);
}

static void test_operators(void** state) {
  (void)state;
  run_all("onnx-conformance/node", sizeof(cases) / sizeof(cases[0]), cases, BIND_NOTHING, BIND_NOTHING);
}

static void test_operators_with_constant_parameters(void** state) {
  (void)state;
  run_all("onnx-conformance/node", sizeof(bound_cases) / sizeof(bound_cases[0]), bound_cases, BIND_PARAMETERS,
          BIND_ALL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_operators),
                                     cmocka_unit_test(test_operators_with_constant_parameters),
                                     cmocka_unit_test(test_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
