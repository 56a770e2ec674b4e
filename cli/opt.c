// weft opt: runs passes over tensor IR.
#include "cli/cli.h"
#include "cli/model.h"
#include "passes/passes.h"

const weft_command_t weft_command_opt = {
    .name = "opt",
    .arguments = "FILE.mlir|MODEL.onnx [--pipeline TEXT]",
    .summary = "runs a pass pipeline over tensor IR",
    .positional_min = 0,
    .positional_max = 1,
    .options = (const weft_option_t[]){
        {"pipeline", "TEXT", "for example builtin.module(canonicalize,cse); default: the compiler's"},
        {"dump-dir", "DIR", "writes the IR after each pass there"},
        {"list", NULL, "lists Weft's own passes and the default pipeline"},
        {"o|output", "FILE", "instead of standard output"},
        WEFT_OPTIONS_MODEL,
        {NULL, NULL, NULL}}};

weft_status_t weft_cli_opt(weft_cli_t* cli) {
  const weft_options_t* options = &cli->options;
  weft_text_t text;
  weft_text_initialize(cli->allocator, &text);
  weft_tensor_context_t* context = NULL;
  weft_model_t model = {0};
  weft_status_t status = weft_ok();
  if (weft_options_has(options, "list")) {
    status = weft_passes_print(&text);
    if (!status) status = weft_text_printf(&text, "\ndefault pipeline:\n  %s\n", weft_passes_default_pipeline());
  } else if (!options->positional_count) {
    status = weft_error(INVALID_ARGUMENT, "usage: weft opt %s", weft_command_opt.arguments);
  } else {
    status = weft_cli_context(cli, &context);
    if (!status) status = weft_cli_import(cli, options->positional[0], context, &model);
    if (!status) {
      status = weft_tensor_run_pipeline(context, model.module,
                                        weft_options_get(options, "pipeline", weft_passes_default_pipeline()),
                                        weft_options_get(options, "dump-dir", NULL));
    }
    if (!status) status = weft_tensor_print(model.module, &text);
  }
  if (!status) status = weft_cli_emit(cli, weft_options_get(options, "output", NULL), &text);
  if (!mlirModuleIsNull(model.module)) mlirModuleDestroy(model.module);
  if (context) weft_tensor_context_destroy(context);
  weft_text_deinitialize(&text);
  return status;
}
