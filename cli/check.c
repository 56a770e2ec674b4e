// weft check: is a stage or an image legal?
#include "check/check.h"

#include "cli/cli.h"
#include "cli/stage.h"

const weft_command_t weft_command_check = {
    .name = "check",
    .arguments = "IMAGE|STAGE [--machine SPEC --defects SPEC]",
    .summary = "derives again whether an image or a stage is legal",
    .details = "A stage needs the machine and the defects that it was made for; an image carries its own.",
    .positional_min = 1,
    .positional_max = 1,
    .options =
        (const weft_option_t[]){WEFT_OPTIONS_MACHINE, {"q|quiet", NULL, "only the exit code"}, {NULL, NULL, NULL}}};

weft_status_t weft_cli_check(weft_cli_t* cli) {
  weft_cli_stage_t stage;
  WEFT_RETURN_IF_ERROR(weft_cli_stage_open(cli, cli->options.positional[0], &stage));
  weft_status_t status = stage.is_image ? weft_check_image(cli->allocator, &stage.image)
                                        : weft_check_fabric(&stage.fabric, &stage.machine, &stage.defects);
  if (!status) weft_cli_say(cli, "%s: fine", cli->options.positional[0]);
  weft_cli_stage_close(&stage);
  return status;
}
