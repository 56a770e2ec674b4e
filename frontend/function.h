// Functions that the model brings along: a node that calls one is replaced by the function's nodes.
#pragma once
#include "frontend/node.h"

// NULL: the model has no such function.
const Onnx__FunctionProto* weft_onnx_function_find(const weft_onnx_builder_t* builder, const char* domain,
                                                   const char* name);
// Emits the function's nodes for the call.
weft_status_t weft_onnx_function_call(node_t* node, const Onnx__FunctionProto* function);
// The value that the called function gives to an attribute which the call leaves out; NULL: none.
weft_status_t weft_onnx_function_default(const node_t* call, const char* name, const Onnx__AttributeProto** out);
