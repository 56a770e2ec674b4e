// NumPy's .npy files (numpy/lib/format.py, "Format Version 1.0" and "2.0").
#include "base/npy.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"

static const struct {
  const char* descr;
  weft_dtype_e dtype;
} descriptions[] = {
    {"<f4", WEFT_DTYPE_F32}, {"<f8", WEFT_DTYPE_F64}, {"<f2", WEFT_DTYPE_F16}, {"|i1", WEFT_DTYPE_I8},
    {"<i2", WEFT_DTYPE_I16}, {"<i4", WEFT_DTYPE_I32}, {"<i8", WEFT_DTYPE_I64}, {"|u1", WEFT_DTYPE_U8},
    {"<u2", WEFT_DTYPE_U16}, {"<u4", WEFT_DTYPE_U32}, {"<u8", WEFT_DTYPE_U64}, {"|b1", WEFT_DTYPE_BOOL},
};

static weft_status_t parse_header(const char* path, const char* header, weft_host_tensor_t* out_tensor) {
  const char* descr = strstr(header, "'descr':");
  const char* order = strstr(header, "'fortran_order':");
  const char* shape = strstr(header, "'shape':");
  if (!descr || !order || !shape)
    return weft_error(INVALID_INPUT, "%s: the .npy header lacks descr, fortran_order or shape", path);
  char type[8] = "";
  if (sscanf(descr, "'descr': '%7[^']'", type) != 1)
    return weft_error(INVALID_INPUT, "%s: cannot read descr of the .npy header", path);
  bool known = false;
  for (size_t i = 0; i < sizeof descriptions / sizeof *descriptions; ++i) {
    if (strcmp(type, descriptions[i].descr)) continue;
    out_tensor->dtype = descriptions[i].dtype;
    known = true;
  }
  if (!known)
    return weft_error(UNSUPPORTED, "%s: .npy element type '%s'; known are little-endian f2 f4 f8, i1..i8, u1..u8, b1",
                      path, type);
  for (order += strlen("'fortran_order':"); *order == ' '; ++order) {
  }
  if (*order == 'T')
    return weft_error(UNSUPPORTED, "%s: the array is in Fortran order; save numpy.ascontiguousarray(array)", path);
  shape = strchr(shape, '(');
  if (!shape) return weft_error(INVALID_INPUT, "%s: cannot read shape of the .npy header", path);
  for (++shape; *shape && *shape != ')';) {
    if (!isdigit((unsigned char)*shape)) {
      ++shape;
      continue;
    }
    if (out_tensor->rank == 8) return weft_error(UNSUPPORTED, "%s: more than 8 dimensions", path);
    char* end = NULL;
    out_tensor->extent[out_tensor->rank++] = strtoll(shape, &end, 10);
    shape = end;
  }
  return weft_ok();
}

weft_status_t weft_npy_read(weft_arena_t* arena, const char* path, weft_host_tensor_t* out_tensor) {
  *out_tensor = (weft_host_tensor_t){.name = path};
  weft_mapping_t mapping;
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &mapping));
  weft_status_t status = weft_ok();
  const uint8_t* data = mapping.data;
  size_t header_at = 0, header_size = 0;
  if (mapping.size >= 12 && !memcmp(data, "\x93NUMPY", 6)) {
    header_at = data[6] == 1 ? 10 : 12;
    header_size = data[8] | (size_t)data[9] << 8;
    if (data[6] != 1) header_size |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
  }
  if (!header_at || header_size > mapping.size - header_at) {
    status = weft_error(INVALID_INPUT, "%s: not a .npy file, or truncated", path);
  }
  char* header = NULL;
  if (!status) status = WEFT_ARENA_NEW(arena, header_size + 1, &header);
  if (!status) {
    memcpy(header, data + header_at, header_size);
    status = parse_header(path, header, out_tensor);
  }
  if (!status) {
    int64_t bytes = (int64_t)weft_dtype_size(out_tensor->dtype);
    for (int32_t i = 0; i < out_tensor->rank && !status; ++i) {
      if (!weft_checked_mul(bytes, out_tensor->extent[i], &bytes))
        status = weft_error(INVALID_INPUT, "%s: size overflows", path);
    }
    size_t have = mapping.size - header_at - header_size;
    if (!status && (uint64_t)bytes != have) {
      status = weft_error(INVALID_INPUT, "%s: the header says %lld bytes of data, the file has %zu", path,
                          (long long)bytes, have);
    }
    if (!status) status = weft_arena_copy(arena, data + header_at + header_size, have, &out_tensor->data);
    out_tensor->size = have;
  }
  weft_file_unmap(&mapping);
  return status;
}

weft_status_t weft_npy_write(weft_allocator_t allocator, const char* path, const weft_host_tensor_t* tensor) {
  const char* descr = NULL;
  for (size_t i = 0; i < sizeof descriptions / sizeof *descriptions; ++i) {
    if (descriptions[i].dtype == tensor->dtype) descr = descriptions[i].descr;
  }
  if (!descr)
    return weft_error(UNSUPPORTED, "%s: .npy has no element type %s; write .pb", path, weft_dtype_name(tensor->dtype));
  char header[512];
  int count = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int32_t i = 0; i < tensor->rank; ++i) {
    count += snprintf(header + count, sizeof header - (size_t)count, "%lld,%s", (long long)tensor->extent[i],
                      i + 1 < tensor->rank ? " " : "");
  }
  count += snprintf(header + count, sizeof header - (size_t)count, "), }");
  while ((10 + count + 1) % 64) header[count++] = ' ';
  header[count++] = '\n';
  weft_file_writer_t writer;
  WEFT_RETURN_IF_ERROR(weft_file_writer_open(allocator, path, &writer));
  uint8_t prefix[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)count, (uint8_t)(count >> 8)};
  bool written = fwrite(prefix, 1, sizeof prefix, writer.stream) == sizeof prefix &&
                 fwrite(header, 1, (size_t)count, writer.stream) == (size_t)count &&
                 fwrite(tensor->data, 1, tensor->size, writer.stream) == tensor->size;
  weft_status_t status = written ? weft_file_writer_commit(&writer) : weft_error(IO, "cannot write %s", path);
  weft_file_writer_abandon(&writer);
  return status;
}
