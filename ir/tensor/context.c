#include "ir/tensor/context.h"

#include <mlir-c/RegisterEverything.h>
#include <string.h>

void weft_tensor_sink(MlirStringRef piece, void* sink) {
  weft_tensor_sink_t* self = sink;
  if (self->status) return;
  self->status = weft_text_append(self->text, piece.data, piece.length);
}

static void collect(weft_tensor_sink_t* sink, MlirDiagnostic diagnostic, bool note) {
  if (sink->status) return;
  sink->status = weft_text_printf(sink->text, note ? "  note: " : "");
  if (!sink->status) sink->status = weft_tensor_location_name(mlirDiagnosticGetLocation(diagnostic), sink->text);
  if (!sink->status) sink->status = weft_text_append(sink->text, ": ", 2);
  mlirDiagnosticPrint(diagnostic, weft_tensor_sink, sink);
  if (!sink->status) sink->status = weft_text_append(sink->text, "\n", 1);
  intptr_t notes = mlirDiagnosticGetNumNotes(diagnostic);
  for (intptr_t i = 0; i < notes; ++i) collect(sink, mlirDiagnosticGetNote(diagnostic, i), true);
}

static MlirLogicalResult handle_diagnostic(MlirDiagnostic diagnostic, void* self) {
  weft_tensor_context_t* context = self;
  weft_tensor_sink_t sink = {.text = &context->collecting};
  collect(&sink, diagnostic, false);
  weft_status_free(sink.status); // out of memory: the message is lost, the failure itself is not
  return mlirLogicalResultSuccess();
}

weft_status_t weft_tensor_context_create(weft_allocator_t allocator, weft_tensor_context_t** out_context) {
  *out_context = NULL;
  weft_tensor_context_t* context = NULL;
  WEFT_RETURN_IF_ERROR(weft_allocator_calloc(allocator, 1, sizeof(*context), (void**)&context));
  context->allocator = allocator;
  weft_text_initialize(allocator, &context->collecting);
  weft_text_initialize(allocator, &context->taken);

  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirRegisterAllDialects(registry);
  // One thread: pass order, diagnostics and dumps are the same on every run.
  context->mlir = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  mlirRegisterAllPasses(); // idempotent
  mlirRegisterAllLLVMTranslations(context->mlir);
  context->handler = mlirContextAttachDiagnosticHandler(context->mlir, handle_diagnostic, context, NULL);
  // What is built through the C API has to be loaded; what is parsed loads itself.
  static const char* const loaded[] = {"arith", "affine", "bufferization", "func",          "irdl",   "linalg",
                                       "math",  "memref", "scf",           "sparse_tensor", "tensor", "vector"};
  for (size_t i = 0; i < sizeof(loaded) / sizeof(loaded[0]); ++i)
    mlirContextGetOrLoadDialect(context->mlir, mlirStringRefCreateFromCString(loaded[i]));

  weft_status_t status = weft_tensor_load_dialect(context);
  if (status) {
    weft_tensor_context_destroy(context);
    return status;
  }
  *out_context = context;
  return weft_ok();
}

void weft_tensor_context_destroy(weft_tensor_context_t* context) {
  if (!context) return;
  mlirContextDetachDiagnosticHandler(context->mlir, context->handler);
  mlirContextDestroy(context->mlir);
  weft_text_deinitialize(&context->collecting);
  weft_text_deinitialize(&context->taken);
  weft_allocator_free(context->allocator, context);
}

MlirContext weft_tensor_context_mlir(weft_tensor_context_t* context) {
  return context->mlir;
}

weft_allocator_t weft_tensor_context_allocator(const weft_tensor_context_t* context) {
  return context->allocator;
}

const char* weft_tensor_take_diagnostics(weft_tensor_context_t* context) {
  weft_text_deinitialize(&context->taken);
  context->taken = context->collecting;
  weft_text_initialize(context->allocator, &context->collecting);
  return context->taken.data ? context->taken.data : "";
}

weft_status_t weft_tensor_diagnosed(weft_tensor_context_t* context, weft_status_code_e code, const char* what) {
  const char* text = weft_tensor_take_diagnostics(context);
  size_t length = strlen(text);
  while (length > 0 && text[length - 1] == '\n') --length;
  return weft_status_make(code, __FILE__, __LINE__, "%s%s%.*s", what, length ? ": " : "", (int)length, text);
}

void weft_tensor_register_passes(weft_tensor_context_t* context, const weft_tensor_pass_t* table, int32_t count) {
  context->pass = table;
  context->pass_count = count;
}

weft_status_t weft_tensor_parse(weft_tensor_context_t* context, const char* path, MlirModule* out_module) {
  *out_module = mlirModuleCreateParseFromFile(context->mlir, mlirStringRefCreateFromCString(path));
  if (mlirModuleIsNull(*out_module)) {
    weft_status_t status = weft_tensor_diagnosed(context, WEFT_STATUS_INVALID_INPUT, "not a valid MLIR module");
    return weft_status_annotate(status, "in %s", path);
  }
  return weft_ok();
}

weft_status_t weft_tensor_print(MlirModule module, weft_text_t* text) {
  weft_tensor_sink_t sink = {.text = text};
  mlirOperationPrint(mlirModuleGetOperation(module), weft_tensor_sink, &sink);
  if (!sink.status) sink.status = weft_text_append(text, "\n", 1);
  return sink.status;
}
