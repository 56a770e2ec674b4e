#include "tests/conformance/verdict.h"

const char* const verdict_text[VERDICT_COUNT] = {
#define X(name, text, kind) text,
    VERDICTS(X)
#undef X
};
const char verdict_kind[VERDICT_COUNT] = {
#define X(name, text, kind) #kind[0],
    VERDICTS(X)
#undef X
};
const char* const step_text[STEP_COUNT] = {
#define X(name, verdict) #name,
    STEPS(X)
#undef X
};
const verdict_e step_verdict[STEP_COUNT] = {
#define X(name, verdict) VERDICT_##verdict,
    STEPS(X)
#undef X
};
