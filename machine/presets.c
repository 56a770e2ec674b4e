#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "machine/fields.h"
#include "machine/number.h"
#include "machine/read.h"

// The default machine on the grids that public tools use; docs/machine.md says where they are published.
static const struct {
  const char* name;
  int32_t width, height;
} PRESETS[] = {{"wse1", 633, 633}, {"wse2", 757, 996}, {"wse3", 762, 1172}};

static weft_status_t load_default(const char* name, int64_t width, int64_t height, weft_machine_t* out_machine) {
  WEFT_RETURN_IF_ERROR(weft_machine_read_default(out_machine));
  snprintf(out_machine->name, sizeof(out_machine->name), "%s", name);
  out_machine->width = (int32_t)width;
  out_machine->height = (int32_t)height;
  weft_machine_fit_ports(out_machine);
  return weft_ok();
}

static bool side_valid(int64_t side) {
  return side >= 1 && side <= WEFT_MACHINE_MAX_SIDE;
}

static weft_status_t load_mesh(const char* spec, weft_machine_t* out_machine) {
  const char* width_text = spec + strlen("mesh:");
  const char* cross = strchr(width_text, 'x');
  int64_t width, height;
  if (!cross || !weft_machine_number_integer(width_text, (size_t)(cross - width_text), &width) ||
      !weft_machine_number_integer(cross + 1, strlen(cross + 1), &height) || !side_valid(width) ||
      !side_valid(height)) {
    return weft_error(INVALID_ARGUMENT,
                      "machine '%s': expected mesh:WIDTHxHEIGHT, each from 1 to %d, such as mesh:32x32", spec,
                      WEFT_MACHINE_MAX_SIDE);
  }
  if (width * height > WEFT_MACHINE_MAX_TILES) {
    return weft_error(INVALID_ARGUMENT, "machine '%s': %lld tiles, expected at most %d", spec,
                      (long long)(width * height), WEFT_MACHINE_MAX_TILES);
  }
  char name[64]; // leading zeros don't make another machine
  snprintf(name, sizeof(name), "mesh:%lldx%lld", (long long)width, (long long)height);
  return load_default(name, width, height, out_machine);
}

weft_status_t weft_machine_load(weft_allocator_t allocator, const char* spec, weft_machine_t* out_machine) {
  (void)allocator; // a machine is a plain value, and files are mapped
  for (size_t i = 0; i < sizeof(PRESETS) / sizeof(PRESETS[0]); ++i) {
    if (strcmp(spec, PRESETS[i].name) == 0) {
      return load_default(spec, PRESETS[i].width, PRESETS[i].height, out_machine);
    }
  }
  if (strncmp(spec, "mesh:", strlen("mesh:")) == 0) return load_mesh(spec, out_machine);
  weft_mapping_t mapping;
  weft_status_t status = weft_file_map(spec, &mapping);
  if (status) {
    return weft_status_annotate(
        status, "machine '%s' is no preset (wse1, wse2, wse3, mesh:WxH), so it was taken for a file", spec);
  }
  status = weft_machine_parse((const char*)mapping.data, mapping.size, spec, out_machine);
  weft_file_unmap(&mapping);
  return status;
}
