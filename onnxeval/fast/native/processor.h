/* What the processor and the system have. */
#ifndef ONNXEVAL_PROCESSOR_H
#define ONNXEVAL_PROCESSOR_H

/* Whether they have what a tier was compiled for. */
int supports(const char *tier);

#endif
