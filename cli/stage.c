#include "cli/stage.h"

#include <string.h>

weft_status_t weft_cli_is_fabric(const char* path, bool* out_is_fabric) {
  static const char magic[] = "weft.fabric ";
  weft_mapping_t mapping;
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &mapping));
  *out_is_fabric = mapping.size >= sizeof magic - 1 && !memcmp(mapping.data, magic, sizeof magic - 1);
  weft_file_unmap(&mapping);
  return weft_ok();
}

static weft_status_t open_image(weft_cli_t* cli, const char* path, weft_cli_stage_t* stage) {
  WEFT_RETURN_IF_ERROR(weft_image_map(cli->allocator, path, &stage->image));
  const weft_image_t* image = &stage->image;
  WEFT_RETURN_IF_ERROR(weft_machine_parse(image->machine_xml, image->machine_xml_size, path, &stage->machine));
  return weft_defects_parse(cli->allocator, image->defects_text, image->defects_text_size, path, &stage->machine,
                            &stage->defects);
}

static weft_status_t open_fabric(weft_cli_t* cli, const char* path, weft_cli_stage_t* stage) {
  const weft_options_t* options = &cli->options;
  WEFT_RETURN_IF_ERROR(
      weft_machine_load(cli->allocator, weft_options_get(options, "machine", "mesh:32x32"), &stage->machine));
  WEFT_RETURN_IF_ERROR(
      weft_defects_load(cli->allocator, weft_options_get(options, "defects", NULL), &stage->machine, &stage->defects));
  WEFT_RETURN_IF_ERROR(weft_fabric_read(cli->allocator, path, &stage->fabric));
  if (stage->fabric.stage < WEFT_STAGE_PLACED) return weft_ok();
  return weft_fabric_match(&stage->fabric, &stage->machine, &stage->defects);
}

weft_status_t weft_cli_stage_open(weft_cli_t* cli, const char* path, weft_cli_stage_t* out_stage) {
  *out_stage = (weft_cli_stage_t){0};
  bool is_fabric = false;
  WEFT_RETURN_IF_ERROR(weft_cli_is_fabric(path, &is_fabric));
  out_stage->is_image = !is_fabric;
  weft_fabric_initialize(cli->allocator, &out_stage->fabric);
  weft_status_t status = is_fabric ? open_fabric(cli, path, out_stage) : open_image(cli, path, out_stage);
  if (status) weft_cli_stage_close(out_stage);
  return status;
}

void weft_cli_stage_close(weft_cli_stage_t* stage) {
  if (stage->is_image && stage->image.mapping.data) weft_image_unmap(&stage->image);
  weft_fabric_deinitialize(&stage->fabric);
  weft_defects_deinitialize(&stage->defects);
}
