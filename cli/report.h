// What a compilation made of a model, for --report: see docs/report.md.
#pragma once
#include <jansson.h>

#include "frontend/frontend.h"
#include "ir/fabric/fabric.h"

// A kernel an entry, in the fabric's order: where it is, what it costs a step, and what bounds it.
json_t* weft_cli_report_kernels(const weft_fabric_t* fabric);
// A node of the model an entry: which kernels do its work, their tiles, bytes and cycles. Of a fabric whose model is
// not at hand (node_count 0) the nodes are those that its kernels name.
json_t* weft_cli_report_nodes(const weft_fabric_t* fabric, const weft_model_t* model);
