// Runs a textual pass pipeline, one element of builtin.module(...) at a time: so that the elements can be dumped
// between, and because MLIR's pass registry is closed to C, so that Weft's own passes can be mixed in.
#include <mlir-c/Pass.h>
#include <string.h>

#include "base/file.h"
#include "ir/tensor/context.h"

static const char prefix[] = "builtin.module(";

// The length of the first element of a comma-separated list; commas inside brackets don't count. -1: unbalanced.
static int64_t element_length(const char* list, size_t size) {
  int depth = 0;
  for (size_t i = 0; i < size; ++i) {
    if (strchr("({[<", list[i]))
      ++depth;
    else if (strchr(")}]>", list[i]) && --depth < 0)
      return -1;
    else if (list[i] == ',' && depth == 0)
      return (int64_t)i;
  }
  return depth == 0 ? (int64_t)size : -1;
}

typedef struct own_pass_t {
  weft_tensor_context_t* context;
  const weft_tensor_pass_t* pass;
  weft_status_t status;
} own_pass_t;
static void run_own(MlirOperation operation, MlirExternalPass self, void* data) {
  own_pass_t* own = data;
  own->status = own->pass->run(own->context, operation);
  if (own->status) mlirExternalPassSignalFailure(self);
}
static void ignore(void* data) {
  (void)data;
}
static void* same(void* data) {
  return data;
}

static weft_status_t add_own(own_pass_t* own, MlirPassManager manager, MlirTypeIDAllocator ids) {
  MlirExternalPassCallbacks callbacks = {.construct = ignore, .destruct = ignore, .clone = same, .run = run_own};
  MlirStringRef name = mlirStringRefCreateFromCString(own->pass->name);
  MlirPass pass = mlirCreateExternalPass(mlirTypeIDAllocatorAllocateTypeID(ids), name, name,
                                         mlirStringRefCreateFromCString(own->pass->description),
                                         mlirStringRefCreateFromCString("builtin.module"), 0, NULL, callbacks, own);
  mlirPassManagerAddOwnedPass(manager, pass);
  return weft_ok();
}

static weft_status_t run_element(weft_tensor_context_t* context, MlirModule module, const char* element,
                                 size_t length) {
  own_pass_t own = {.context = context};
  for (int32_t i = 0; i < context->pass_count; ++i)
    if (strlen(context->pass[i].name) == length && memcmp(context->pass[i].name, element, length) == 0)
      own.pass = &context->pass[i];

  MlirPassManager manager = mlirPassManagerCreate(context->mlir);
  MlirTypeIDAllocator ids = mlirTypeIDAllocatorCreate();
  weft_text_t message;
  weft_text_initialize(context->allocator, &message);
  weft_tensor_sink_t sink = {.text = &message};
  weft_status_t status = weft_ok();
  if (own.pass) {
    status = add_own(&own, manager, ids);
  } else if (mlirLogicalResultIsFailure(mlirOpPassManagerAddPipeline(mlirPassManagerGetAsOpPassManager(manager),
                                                                     mlirStringRefCreate(element, length),
                                                                     weft_tensor_sink, &sink))) {
    status = sink.status;
    if (!status)
      status = weft_error(INVALID_ARGUMENT, "no pass pipeline element '%.*s': %s", (int)length, element,
                          message.data ? message.data : "");
  }
  if (!status && mlirLogicalResultIsFailure(mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(module)))) {
    if (own.status && !context->collecting.count) {
      status = own.status;
    } else {
      status = weft_tensor_diagnosed(context, WEFT_STATUS_INVALID_INPUT, "the pass failed");
      if (own.status) status = weft_status_join(own.status, status);
    }
    status = weft_status_annotate(status, "in pass %.*s", (int)length, element);
  }
  weft_text_deinitialize(&message);
  mlirPassManagerDestroy(manager);
  mlirTypeIDAllocatorDestroy(ids);
  return status;
}

// DIR/03-name.mlir; large constants are elided and locations kept out: a dump is for reading.
static weft_status_t dump(weft_tensor_context_t* context, MlirModule module, const char* directory, int index,
                          const char* element, size_t length) {
  weft_text_t path, text;
  weft_text_initialize(context->allocator, &path);
  weft_text_initialize(context->allocator, &text);
  char name[64];
  size_t used = 0;
  for (size_t i = 0; i < length && used + 1 < sizeof(name) && element[i] != '{'; ++i) {
    bool word = (element[i] >= 'a' && element[i] <= 'z') || (element[i] >= '0' && element[i] <= '9');
    if (word)
      name[used++] = element[i];
    else if (used > 0 && name[used - 1] != '-')
      name[used++] = '-';
  }
  while (used > 0 && name[used - 1] == '-') --used;
  name[used] = 0;
  weft_tensor_sink_t sink = {.text = &text};
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsElideLargeElementsAttrs(flags, 32);
  mlirOpPrintingFlagsElideLargeResourceString(flags, 32);
  mlirOperationPrintWithFlags(mlirModuleGetOperation(module), flags, weft_tensor_sink, &sink);
  mlirOpPrintingFlagsDestroy(flags);
  weft_status_t status = sink.status;
  if (!status) status = weft_text_append(&text, "\n", 1);
  if (!status) status = weft_text_printf(&path, "%s/%02d-%s.mlir", directory, index, name);
  if (!status) status = weft_file_write(context->allocator, path.data, text.data, text.count);
  weft_text_deinitialize(&path);
  weft_text_deinitialize(&text);
  return status;
}

weft_status_t weft_tensor_run_pipeline(weft_tensor_context_t* context, MlirModule module, const char* pipeline,
                                       const char* dump_dir) {
  size_t size = strlen(pipeline), head = strlen(prefix);
  if (strncmp(pipeline, prefix, head) == 0 && pipeline[size - 1] == ')') {
    pipeline += head;
    size -= head + 1;
  }
  for (int index = 0; size > 0; ++index) {
    int64_t length = element_length(pipeline, size);
    if (length < 0) return weft_error(INVALID_ARGUMENT, "unbalanced brackets in the pass pipeline at '%s'", pipeline);
    WEFT_RETURN_IF_ERROR(run_element(context, module, pipeline, (size_t)length));
    if (dump_dir) WEFT_RETURN_IF_ERROR(dump(context, module, dump_dir, index, pipeline, (size_t)length));
    size_t skip = (size_t)length < size ? (size_t)length + 1 : size; // and the comma
    pipeline += skip;
    size -= skip;
  }
  return weft_ok();
}
