// weft inspect: what an image holds, down to the instruction.
#include <string.h>

#include "backend/backend.h"
#include "cli/cli.h"

const weft_command_t weft_command_inspect = {
    .name = "inspect",
    .arguments = "IMAGE [--tile X,Y|host] [--kernel NAME] [--stream NAME]",
    .summary = "prints tables and disassembly of an image",
    .positional_min = 1,
    .positional_max = 1,
    .options = (const weft_option_t[]){{"tile", "X,Y", "only that tile (or 'host'), with its parameters filled in"},
                                       {"kernel", "NAME", "only that kernel's programs"},
                                       {"stream", "NAME", "only streams of that tensor"},
                                       {"o|output", "FILE", "instead of standard output"},
                                       {NULL, NULL, NULL}}};

weft_status_t weft_cli_inspect(weft_cli_t* cli) {
  const weft_options_t* options = &cli->options;
  weft_image_t image;
  WEFT_RETURN_IF_ERROR(weft_image_map(cli->allocator, options->positional[0], &image));
  weft_text_t text;
  weft_text_initialize(cli->allocator, &text);
  weft_status_t status = weft_ok();
  int32_t tile = INT32_MIN;
  const char* where = weft_options_get(options, "tile", NULL);
  if (where && !strcmp(where, "host")) {
    tile = WEFT_HOST_TILE;
  } else if (where) {
    int x = 0, y = 0, end = 0;
    if (sscanf(where, "%d,%d%n", &x, &y, &end) != 2 || where[end] || x < 0 || y < 0 || x >= image.header.width ||
        y >= image.header.height) {
      status = weft_error(INVALID_ARGUMENT, "--tile takes X,Y inside %dx%d or 'host', got '%s'", image.header.width,
                          image.header.height, where);
    }
    tile = y * image.header.width + x;
  }
  if (!status) {
    status = weft_backend_inspect(&image, tile, weft_options_get(options, "kernel", NULL),
                                  weft_options_get(options, "stream", NULL), &text);
  }
  if (!status) status = weft_cli_emit(cli, weft_options_get(options, "output", NULL), &text);
  weft_text_deinitialize(&text);
  weft_image_unmap(&image);
  return status;
}
