#include "cli/model.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/tensor_io.h"
#include "passes/passes.h"

weft_status_t weft_cli_context(weft_cli_t* cli, weft_tensor_context_t** out_context) {
  WEFT_RETURN_IF_ERROR(weft_tensor_context_create(cli->allocator, out_context));
  weft_status_t status = weft_passes_register(*out_context);
  if (status) weft_tensor_context_destroy(*out_context);
  return status;
}

static weft_status_t describe(weft_arena_t* arena, const char* path, MlirType type, MlirAttribute attributes,
                              const char* kind, intptr_t index, weft_frontend_io_t* out_io) {
  *out_io = (weft_frontend_io_t){0};
  WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &out_io->name, "%s%d", kind, (int)index));
  if (!mlirAttributeIsNull(attributes) && mlirAttributeIsADictionary(attributes)) {
    MlirAttribute name = mlirDictionaryAttrGetElementByName(attributes, mlirStringRefCreateFromCString("weft.name"));
    if (!mlirAttributeIsNull(name) && mlirAttributeIsAString(name)) {
      MlirStringRef text = mlirStringAttrGetValue(name);
      WEFT_RETURN_IF_ERROR(weft_arena_printf(arena, &out_io->name, "%.*s", (int)text.length, text.data));
    }
  }
  if (!mlirTypeIsARankedTensor(type) || !mlirShapedTypeHasStaticShape(type) || mlirShapedTypeGetRank(type) > 8 ||
      !weft_tensor_dtype(mlirShapedTypeGetElementType(type), &out_io->dtype)) {
    return weft_error(INVALID_INPUT, "%s: %s of main is no static tensor of a known type", path, out_io->name);
  }
  out_io->rank = (int32_t)mlirShapedTypeGetRank(type);
  for (int32_t i = 0; i < out_io->rank; ++i) out_io->extent[i] = mlirShapedTypeGetDimSize(type, i);
  return weft_ok();
}

// Reads names and types of main's arguments and results from tensor IR text.
static weft_status_t import_text(weft_cli_t* cli, const char* path, weft_tensor_context_t* context,
                                 weft_model_t* out_model) {
  weft_mapping_t mapping;
  WEFT_RETURN_IF_ERROR(weft_file_map(path, &mapping));
  *out_model = (weft_model_t){.arena = cli->arena, .name = path, .digest = weft_digest_of(mapping.data, mapping.size)};
  weft_file_unmap(&mapping);
  WEFT_RETURN_IF_ERROR(weft_tensor_parse(context, path, &out_model->module));
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(out_model->module));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    MlirAttribute symbol = mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString("sym_name"));
    if (!mlirAttributeIsNull(symbol) &&
        mlirStringRefEqual(mlirStringAttrGetValue(symbol), mlirStringRefCreateFromCString("main")))
      break;
  }
  if (mlirOperationIsNull(op)) return weft_error(INVALID_INPUT, "%s: no function main", path);
  MlirType type =
      mlirTypeAttrGetValue(mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString("function_type")));
  MlirAttribute lists[2] = {mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString("arg_attrs")),
                            mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString("res_attrs"))};
  out_model->input_count = (int32_t)mlirFunctionTypeGetNumInputs(type);
  out_model->output_count = (int32_t)mlirFunctionTypeGetNumResults(type);
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(cli->arena, (size_t)out_model->input_count, &out_model->input));
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(cli->arena, (size_t)out_model->output_count, &out_model->output));
  for (int side = 0; side < 2; ++side) {
    int32_t count = side ? out_model->output_count : out_model->input_count;
    for (int32_t i = 0; i < count; ++i) {
      MlirAttribute attributes =
          mlirAttributeIsNull(lists[side]) ? lists[side] : mlirArrayAttrGetElement(lists[side], i);
      WEFT_RETURN_IF_ERROR(
          describe(cli->arena, path, side ? mlirFunctionTypeGetResult(type, i) : mlirFunctionTypeGetInput(type, i),
                   attributes, side ? "output" : "input", i, side ? &out_model->output[i] : &out_model->input[i]));
    }
  }
  return weft_ok();
}

static weft_status_t read_bound(weft_cli_t* cli, weft_host_tensor_t** out_bound, int32_t* out_count) {
  while (weft_options_nth(&cli->options, "bind", *out_count)) ++*out_count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(cli->arena, (size_t)*out_count + 1, out_bound));
  for (int32_t i = 0; i < *out_count; ++i) {
    const char *name, *source;
    WEFT_RETURN_IF_ERROR(
        weft_options_split(cli->arena, "bind", weft_options_nth(&cli->options, "bind", i), &name, &source));
    WEFT_RETURN_IF_ERROR(weft_tensor_io_load(cli->arena, name, source, &(*out_bound)[i]));
  }
  return weft_ok();
}

weft_status_t weft_cli_import(weft_cli_t* cli, const char* path, weft_tensor_context_t* context,
                              weft_model_t* out_model) {
  size_t length = strlen(path);
  if (length > 5 && !strcmp(path + length - 5, ".mlir")) {
    const char* bind = weft_options_nth(&cli->options, "bind", 0);
    if (bind) return weft_error(INVALID_ARGUMENT, "--bind %s: %s is tensor IR, whose inputs are settled", bind, path);
    return import_text(cli, path, context, out_model);
  }
  weft_frontend_dim_t* dims = NULL;
  int32_t count = 0;
  while (weft_options_nth(&cli->options, "dim", count)) ++count;
  WEFT_RETURN_IF_ERROR(WEFT_ARENA_NEW(cli->arena, (size_t)count + 1, &dims));
  for (int32_t i = 0; i < count; ++i) {
    const char* value = NULL;
    WEFT_RETURN_IF_ERROR(
        weft_options_split(cli->arena, "dim", weft_options_nth(&cli->options, "dim", i), &dims[i].name, &value));
    char* end = NULL;
    dims[i].value = strtoll(value, &end, 10);
    if (*end || dims[i].value < 0) {
      return weft_error(INVALID_ARGUMENT, "--dim %s takes a whole number that is not negative, got '%s'", dims[i].name,
                        value);
    }
  }
  weft_host_tensor_t* bound = NULL;
  int32_t bound_count = 0;
  WEFT_RETURN_IF_ERROR(read_bound(cli, &bound, &bound_count));
  return weft_frontend_import_bound(context, cli->arena, path, dims, count, bound, bound_count, out_model);
}
