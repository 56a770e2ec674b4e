// weft ops: the ONNX operators that are supported.
#include "cli/cli.h"
#include "frontend/frontend.h"

const weft_command_t weft_command_ops = {.name = "ops",
                                         .arguments = "[--markdown]",
                                         .summary = "lists the supported ONNX operators",
                                         .options =
                                             (const weft_option_t[]){{"markdown", NULL, "as docs/operators.md"},
                                                                     {"o|output", "FILE", "instead of standard output"},
                                                                     {NULL, NULL, NULL}}};

weft_status_t weft_cli_ops(weft_cli_t* cli) {
  weft_text_t text;
  weft_text_initialize(cli->allocator, &text);
  weft_status_t status = weft_frontend_print_operators(weft_options_has(&cli->options, "markdown"), &text);
  if (!status) status = weft_cli_emit(cli, weft_options_get(&cli->options, "output", NULL), &text);
  weft_text_deinitialize(&text);
  return status;
}
