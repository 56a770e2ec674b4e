// weft machine: shows and checks machines and defect maps.
#include <string.h>

#include "cli/cli.h"
#include "machine/defects.h"

const weft_command_t weft_command_machine = {
    .name = "machine",
    .arguments = "show|check|defects [SPEC] [--defects SPEC]",
    .summary = "shows and checks machine descriptions and defect maps",
    .details = "show SPEC      prints the machine's XML: wse1, wse2, wse3, mesh:WxH or a file to start one's own from\n"
               "check FILE     says whether an XML file is valid\n"
               "defects SPEC   prints the defect map of --defects on that machine, as a file that loads back",
    .positional_min = 1,
    .positional_max = 2,
    .options = (const weft_option_t[]){{"defects", "SPEC", "a defect file, or rate=0.01,seed=7"},
                                       {"o|output", "FILE", "instead of standard output"},
                                       {NULL, NULL, NULL}}};

weft_status_t weft_cli_machine(weft_cli_t* cli) {
  const weft_options_t* options = &cli->options;
  const char* what = options->positional[0];
  const char* spec = options->positional_count > 1 ? options->positional[1] : "mesh:32x32";
  bool show = !strcmp(what, "show"), check = !strcmp(what, "check"), map = !strcmp(what, "defects");
  if (!show && !check && !map)
    return weft_error(INVALID_ARGUMENT, "weft machine does show, check or defects, not '%s'", what);
  if (check && options->positional_count < 2)
    return weft_error(INVALID_ARGUMENT, "check which file? weft machine check FILE.xml");
  weft_machine_t machine;
  WEFT_RETURN_IF_ERROR(weft_machine_load(cli->allocator, spec, &machine));
  weft_text_t text;
  weft_text_initialize(cli->allocator, &text);
  weft_status_t status = weft_ok();
  if (show) {
    status = weft_machine_print(&machine, &text);
  } else if (check) {
    status = weft_text_printf(&text, "%s: fine, %s, %dx%d tiles\n", spec, machine.name, machine.width, machine.height);
  } else {
    weft_defects_t defects;
    status = weft_defects_load(cli->allocator, weft_options_get(options, "defects", NULL), &machine, &defects);
    if (!status) {
      status = weft_defects_print(&defects, &text);
      weft_defects_deinitialize(&defects);
    }
  }
  if (!status) status = weft_cli_emit(cli, weft_options_get(options, "output", NULL), &text);
  weft_text_deinitialize(&text);
  return status;
}
