// Scaled dot-product attention, as several operators ask for it.
#pragma once
#include "frontend/emit.h"

// Queries, keys or values. Heads of keys and values may be shared: `group` heads of queries each.
typedef struct weft_onnx_heads_t {
  value_t* value; // [batch, heads, length, size], or [batch, length, heads, size] if sequence_first
  bool sequence_first;
} weft_onnx_heads_t;

enum { WEFT_ONNX_SCORES_RAW, WEFT_ONNX_SCORES_CAPPED, WEFT_ONNX_SCORES_BIASED, WEFT_ONNX_SCORES_SOFTMAX };
typedef struct weft_onnx_attention_t {
  weft_onnx_heads_t query, key, value;
  double scale, softcap; // softcap 0: none
  value_t* bias; // added to the scores [batch, heads, queries, keys], or bool: those that count; broadcasts. Or NULL
  value_t* second_bias; // likewise
  double masked;        // what a bool's false adds; -inf or a large negative number
  value_t* key_count;   // [batch]: keys from there on do not count. Or NULL
  value_t* key_start;   // [batch]: keys before it do not count. Or NULL
  bool is_causal;       // query i sees keys up to i + past
  int64_t past;
  weft_status_t (*change)(node_t* node, void* how, value_t** value); // what else happens to the scores; NULL: nothing
  void *change_scores, *change_weights;                              // before and after the softmax
  int32_t scores_kind;                                               // which scores are wanted
  value_t** out_scores;                                              // NULL: none
} weft_onnx_attention_t;

// [batch, length, heads * size] -> heads.
weft_status_t weft_onnx_split_heads(node_t* node, value_t* value, int64_t heads, weft_onnx_heads_t* out);
// As [batch, heads, length, size].
weft_status_t weft_onnx_heads_first(node_t* node, const weft_onnx_heads_t* heads, value_t** out);
// past [batch, heads, length, size] and then these; `past` may be NULL.
weft_status_t weft_onnx_append_heads(node_t* node, value_t* past, weft_onnx_heads_t* heads);
// The result lies as the queries do, and has their type: [batch, heads, queries, size], or [batch, queries, heads *
// size].
weft_status_t weft_onnx_attend(node_t* node, const weft_onnx_attention_t* attention, value_t** out);

// Turns pairs of the last axis by angles given as cosines and sines [batch, length, pairs]. What is not turned, past
// 2 * pairs, stays.
weft_status_t weft_onnx_rotate(node_t* node, weft_onnx_heads_t* heads, value_t* cosines, value_t* sines,
                               bool interleaved);
