// Weights in a file of their own beside the model.
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "frontend/tensor_proto.h"

static const char* entry(const Onnx__TensorProto* proto, const char* key) {
  for (size_t i = 0; i < proto->n_external_data; ++i) {
    const Onnx__StringStringEntryProto* pair = proto->external_data[i];
    if (pair->key && pair->value && strcmp(pair->key, key) == 0) return pair->value;
  }
  return NULL;
}

static bool parse_size(const char* text, size_t otherwise, size_t* out) {
  *out = otherwise;
  if (!text) return true;
  char* end;
  unsigned long long value = strtoull(text, &end, 10);
  *out = (size_t)value;
  return text[0] >= '0' && text[0] <= '9' && *end == 0 && value < SIZE_MAX / 2;
}

// A model must not read files elsewhere: relative, and no step up.
static bool stays_inside(const char* location) {
  if (location[0] == 0 || location[0] == '/') return false;
  for (const char* part = location; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
    size_t length = strcspn(part, "/");
    if (length == 2 && part[0] == '.' && part[1] == '.') return false;
  }
  return true;
}

// Also where symbolic links lead.
static weft_status_t resolve(weft_arena_t* arena, const char* folder, const char* location, const char* name,
                             const char** out_path) {
  const char* path;
  if (!stays_inside(location))
    return weft_error(INVALID_INPUT, "tensor '%s': external data '%s' is outside of the model's folder", name,
                      location);
  WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &path, "%s/%s", folder, location));
  char *real_folder = realpath(folder, NULL), *real_path = realpath(path, NULL);
  size_t length = real_folder ? strlen(real_folder) : 0;
  bool exists = real_folder && real_path;
  bool inside = exists && strncmp(real_folder, real_path, length) == 0 &&
                (real_path[length] == '/' || (length == 1 && real_folder[0] == '/'));
  free(real_folder); // realpath's own allocation
  free(real_path);
  if (!exists) return weft_error(NOT_FOUND, "tensor '%s': external data file '%s' is missing", name, path);
  if (!inside)
    return weft_error(INVALID_INPUT, "tensor '%s': external data '%s' leads outside of the model's folder", name,
                      location);
  *out_path = path;
  return weft_ok();
}

weft_status_t weft_onnx_read_external(weft_arena_t* arena, const char* folder, const Onnx__TensorProto* proto,
                                      size_t size, const void** out_data) {
  const char *name = proto->name ? proto->name : "", *location = entry(proto, "location"), *path;
  size_t offset, length, end;
  if (!location) return weft_error(INVALID_INPUT, "tensor '%s': external data has no location", name);
  if (!parse_size(entry(proto, "offset"), 0, &offset) || !parse_size(entry(proto, "length"), size, &length))
    return weft_error(INVALID_INPUT, "tensor '%s': offset or length of its external data is not a number", name);
  if (length != size)
    return weft_error(INVALID_INPUT, "tensor '%s': its shape needs %zu bytes, its external data has %zu", name, size,
                      length);
  WEFT_RETURN_IF_ERROR(resolve(arena, folder, location, name, &path));
  weft_mapping_t mapping;
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &mapping));
  weft_status_t status = weft_ok();
  if (!weft_checked_add(offset, size, &end) || end > mapping.size)
    status = weft_error(INVALID_INPUT, "tensor '%s': it needs bytes %zu to %zu of '%s', which has %zu", name, offset,
                        offset + size, path, mapping.size);
  else
    status = weft_arena_allocate(arena, size + 1, 1, (void**)out_data);
  if (!status) memcpy((void*)*out_data, mapping.data + offset, size);
  weft_file_unmap(&mapping);
  return status;
}
