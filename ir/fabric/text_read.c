// Reads the text form (text_form.h): untrusted input. What is well-formed here goes through weft_fabric_verify.
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "ir/fabric/text_reader.h"

static weft_digest_t read_digest(weft_reader_t* r) {
  char word[80];
  weft_digest_t digest = {0};
  weft_scan_name(&r->scan, "a digest", word, sizeof(word));
  if (!r->scan.status && (strlen(word) != 64 || !weft_digest_parse(word, &digest)))
    weft_scan_fail(&r->scan, "expected a digest of 64 hex digits, found '%s'", word);
  return digest;
}

static weft_status_t load_constants(weft_reader_t* r, int64_t size) {
  char* path = NULL;
  weft_mapping_t mapping = {0};
  void* copy = NULL;
  WEFT_RETURN_IF_ERROR(weft_text_form_constants_path(r->allocator, r->scan.path, &path));
  weft_status_t status = weft_file_map(path, &mapping);
  if (!status && mapping.size != (uint64_t)size)
    status = weft_error(INVALID_INPUT, "'%s' has %zu bytes, but %s was written beside %" PRId64, path, mapping.size,
                        r->scan.path, size);
  if (!status) status = weft_arena_copy(&r->fabric->arena, mapping.data, mapping.size, &copy);
  weft_file_unmap(&mapping);
  weft_allocator_free(r->allocator, path);
  r->constants = copy;
  r->constants_size = (size_t)size;
  return status;
}

static void read_header(weft_reader_t* r) {
  weft_scan_t* scan = &r->scan;
  weft_fabric_t* fabric = r->fabric;
  weft_scan_expect(scan, WEFT_TEXT_FORM_MAGIC);
  int64_t version = weft_scan_integer(scan, "a format version", 0, INT32_MAX);
  if (!scan->status && version != WEFT_FABRIC_FORMAT)
    weft_scan_fail(scan, "format version %" PRId64 ", but this weft reads version %d", version, WEFT_FABRIC_FORMAT);
  weft_scan_expect(scan, "stage");
  fabric->stage = (weft_stage_e)weft_scan_word(scan, "a stage", weft_stage_names, WEFT_STAGE_COUNT);
  weft_scan_expect(scan, "seed");
  fabric->seed = weft_scan_unsigned(scan, "a seed");
  weft_scan_expect(scan, "model");
  fabric->model_name = weft_reader_string(r, "a model's name");
  fabric->model_digest = read_digest(r);
  weft_scan_expect(scan, "machine");
  fabric->machine_digest = read_digest(r);
  weft_scan_expect(scan, "defects");
  fabric->defects_digest = read_digest(r);
  weft_scan_expect(scan, "constants");
  int64_t constants = weft_reader_size(r, "a number of bytes");
  if (constants && !scan->status) weft_scan_keep(scan, load_constants(r, constants));
}

static void read_constant(weft_reader_t* r, weft_tensor_t* tensor) {
  size_t bytes = 0, end;
  weft_scan_expect(&r->scan, "at");
  size_t offset = (size_t)weft_reader_size(r, "an offset");
  weft_digest_t expected = read_digest(r);
  if (!r->scan.status) weft_scan_keep(&r->scan, weft_text_form_tensor_bytes(tensor, &bytes));
  if (r->scan.status) return;
  if (offset % WEFT_TEXT_FORM_ALIGNMENT || offset < r->constants_end || !weft_checked_add(offset, bytes, &end) ||
      end > r->constants_size) {
    weft_scan_fail(&r->scan,
                   "constant '%s': %zu bytes at offset %zu are not an aligned part of the %zu bytes after %zu",
                   tensor->name, bytes, offset, r->constants_size, r->constants_end);
    return;
  }
  tensor->data = bytes ? r->constants + offset : (const uint8_t*)"";
  r->constants_end = end;
  weft_digest_t actual = weft_digest_of(tensor->data, bytes);
  if (weft_digest_compare(&actual, &expected) == 0) return;
  char expected_text[65], actual_text[65];
  weft_digest_format(&expected, expected_text);
  weft_digest_format(&actual, actual_text);
  weft_scan_fail(&r->scan, "constant '%s': the digest of its bytes in %s.bin is %.16s.., not %.16s..", tensor->name,
                 r->scan.path, actual_text, expected_text);
}

static void read_tensors(weft_reader_t* r) {
  weft_scan_t* scan = &r->scan;
  weft_fabric_t* fabric = r->fabric;
  weft_scan_expect(scan, "tensors");
  fabric->tensor_count = weft_scan_count(scan, "tensors", sizeof("tensor 0 \"\" input i8 []"));
  WEFT_READER_NEW(r, fabric->tensor_count, &fabric->tensor);
  WEFT_READER_NUMBERED(r, i, fabric->tensor_count, "tensor") {
    weft_tensor_t* tensor = &fabric->tensor[i];
    tensor->name = weft_reader_string(r, "a tensor's name");
    tensor->kind = (weft_tensor_kind_e)weft_scan_word(scan, "a kind of tensor", weft_tensor_kind_names, 3);
    tensor->dtype = weft_reader_dtype(r);
    tensor->shape = weft_reader_shape(r);
    tensor->kernel = tensor->buffer = -1;
    if (tensor->kind == WEFT_TENSOR_CONSTANT) read_constant(r, tensor);
    if (tensor->kind == WEFT_TENSOR_RESULT) {
      weft_scan_expect(scan, "of");
      tensor->kernel = weft_scan_index(scan, "a kernel", INT32_MAX);
      tensor->buffer = weft_scan_index(scan, "a buffer", INT32_MAX);
    }
  }
  weft_scan_expect(scan, "inputs");
  WEFT_READER_NEW(r, fabric->tensor_count, &fabric->input);
  for (; weft_scan_item(scan, fabric->input_count, fabric->tensor_count, "inputs"); ++fabric->input_count)
    fabric->input[fabric->input_count] = weft_scan_index(scan, "a tensor", fabric->tensor_count);
}

static void read_outputs(weft_reader_t* r) {
  weft_fabric_t* fabric = r->fabric;
  weft_scan_expect(&r->scan, "outputs");
  fabric->output_count = weft_scan_count(&r->scan, "outputs", sizeof("output 0 \"\" i8 [] fill 0 pieces 0"));
  WEFT_READER_NEW(r, fabric->output_count, &fabric->output);
  WEFT_READER_NUMBERED(r, i, fabric->output_count, "output") {
    weft_output_t* output = &fabric->output[i];
    output->name = weft_reader_string(r, "an output's name");
    output->dtype = weft_reader_dtype(r);
    output->shape = weft_reader_shape(r);
    weft_reader_fill(r, &output->has_fill, &output->fill);
    weft_reader_pieces(r, &output->piece_count, &output->piece);
  }
}

static weft_status_t read_text(weft_allocator_t allocator, const char* path, const weft_mapping_t* mapping,
                               weft_fabric_t* fabric) {
  weft_reader_t reader = {.allocator = allocator, .fabric = fabric}, *r = &reader;
  weft_scan_initialize(allocator, path, (const char*)mapping->data, mapping->size, &r->scan);
  for (int32_t d = 0; d < WEFT_DIRECTION_COUNT; ++d) r->direction[d] = weft_direction_name((weft_direction_e)d);
  read_header(r);
  read_tensors(r);
  weft_reader_kernels(r);
  read_outputs(r);
  weft_reader_streams(r);
  weft_scan_end(&r->scan);
  weft_status_t status = r->scan.status;
  r->scan.status = NULL;
  weft_scan_deinitialize(&r->scan);
  WEFT_ARRAY_FREE(allocator, &r->endpoints);
  if (!status) status = weft_status_annotate(weft_fabric_verify(fabric), "in '%s'", path);
  return status;
}

weft_status_t weft_fabric_read(weft_allocator_t allocator, const char* path, weft_fabric_t* out_fabric) {
  weft_mapping_t mapping;
  weft_fabric_initialize(allocator, out_fabric);
  weft_status_t status = weft_file_map(path, &mapping);
  if (!status) status = read_text(allocator, path, &mapping, out_fabric);
  weft_file_unmap(&mapping);
  if (status) weft_fabric_deinitialize(out_fabric);
  return status;
}
